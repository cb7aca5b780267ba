package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/scaffold"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/schema"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
	"gitrollout.dev/gitrollout/views/terminal"
)

type initCommand struct {
	streams
	cluster   string
	stateRepo string
	apps      []string
	dryRun    bool
}

func newInit(s streams) *cobra.Command {
	c := &initCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "init [PATH]",
		Short: "Write .gitrollout/<cluster>/ for a repository, after looking at it",
		Long: `Look at the repository in the folder PATH (default: the current one) and write
the configuration of one cluster, .gitrollout/<cluster>/config.yaml, with the apps
that it finds: kustomizations that no other one refers to, Helm charts that none
uses, and folders of plain manifests with a workload. A chart gets its values of the
environment (values-prod.yaml). Of several environments (overlays/prod, envs/staging …)
it takes the one that --cluster names, or prod.
It takes over the settings of Argo CD's Applications and Flux' Kustomizations and
HelmReleases for these folders (namespace, values, files), and names settings that an
entry cannot have, and remote charts that gitrollout vendor has to bring first. It
writes the JSON Schemas for editors into .gitrollout/schemas/.

With --app it writes a Rollout document for each Deployment of that folder without
one, and adds it to the resources of the folder's kustomization, or to the
templates of a chart.

No file is overwritten; --app adds lines to a kustomization. It writes only files that
gitrollout validate accepts. Nothing is committed or pushed.`,
		Example: `  gitrollout init --dry-run
  gitrollout init --cluster prod-eu
  gitrollout init --app apps/shop/overlays/prod`,
		Args: atMostOne("path"),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.run(path.Join(append([]string{"."}, args...)...))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.cluster, "cluster", "",
		"the cluster's `name`: its folder under .gitrollout/ (default: with --app the first configured cluster; otherwise the cluster found in the repository, or prod)")
	flags.StringArrayVar(&c.apps, "app", nil,
		"write Rollout documents for the Deployments of this `folder`; can be repeated")
	flags.StringVar(&c.stateRepo, "state-repo", "",
		"keep the state branch in the repository at this `URL`, on the same server (for many clusters)")
	flags.BoolVar(&c.dryRun, "dry-run", false, "print the files, and write nothing")
	return cmd
}

func (c *initCommand) run(dir string) error {
	tree, err := openDir(dir)
	if err != nil {
		return err
	}
	clusters, err := source.Clusters(tree)
	if err != nil {
		return err
	}
	if strings.ContainsAny(c.cluster, `/\ `) || strings.HasPrefix(c.cluster, ".") {
		return usagef("--cluster %q is not a valid folder name", c.cluster)
	}
	var files []scaffold.File
	var told []string
	cluster := c.cluster
	configured := slices.Contains(clusters, cluster) || cluster == "" && len(clusters) > 0
	if configured {
		cluster = cmp.Or(cluster, clusters[0])
	}
	switch {
	case configured && len(c.apps) == 0:
		return usagef(
			"%s exists already, and nothing is overwritten; name another cluster with --cluster, or an app with --app",
			rollout.ConfigPath(cluster))
	case !configured:
		p, more, err := c.propose(tree)
		if err != nil {
			return err
		}
		p.StateRepo = c.stateRepo
		cluster, files = p.Cluster, append(files, p.ConfigFile())
		told = append(more, "note     give in CODEOWNERS, in this order: /.gitrollout/ to the cluster operators, "+
			"/.gitrollout/"+cluster+"/promote/ to the promoters (docs/forges.md)")
	}
	kinds := []string{"config", "promotion", "freeze"}
	for _, app := range c.apps {
		more, notes, err := c.rollouts(scaffold.With(tree, files), cluster, app)
		if err != nil {
			return err
		}
		files, told = append(files, more...), append(told, notes...)
		kinds = append(kinds, "rollout")
	}
	if files, err = withSchemas(tree, files, slices.Compact(kinds)); err != nil {
		return err
	}
	if err := c.checked(scaffold.With(tree, files), cluster); err != nil {
		return err
	}
	return c.write(dir, cluster, files, told)
}

func looking(to io.Writer, now func() time.Time) func(folder string) {
	told, rendered := now(), 0
	return func(folder string) {
		if rendered++; now().Sub(told) > 2*time.Second {
			_, _ = fmt.Fprintf(to, "looking: %d folders rendered, now %s\n", rendered, folder)
			told = now()
		}
	}
}

func (c *initCommand) propose(tree rollout.Tree) (scaffold.Proposal, []string, error) {
	survey, err := scaffold.Look(tree)
	if err != nil {
		return scaffold.Proposal{}, nil, err
	}
	renderer := newRenderer(c.streams)
	staged, looks := false, looking(c.err, time.Now)
	p, err := scaffold.Propose(tree, survey, c.cluster, protected(), func(app rollout.App) (*rollout.Render, error) {
		looks(app.Path)
		built, err := renderer.Render(tree, app, rollout.Commit{})
		staged = staged || err == nil && len(built.Specs) > 0
		return built, err
	})
	if err != nil {
		return p, nil, &failure{code: exitFailed, err: err}
	}
	lines := p.Told(survey)
	if len(p.Apps) > 0 && !staged && len(c.apps) == 0 {
		lines = append(lines, "note     nothing is released in steps yet; to write a canary for an app's Deployments: "+
			"gitrollout init --app "+p.Apps[0].Path)
	}
	if len(p.Apps) == 0 {
		_, _ = fmt.Fprintln(c.err, strings.Join(lines, "\n"))
		return p, lines, errors.New("there is no app: no folder has a kustomization, chart or workload manifests that can " +
			"be rendered; write one, such as apps/shop/kustomization.yaml")
	}
	return p, lines, nil
}

func (c *initCommand) rollouts(tree rollout.Tree, cluster, dir string) ([]scaffold.File, []string, error) {
	dir = path.Clean(filepath.ToSlash(dir))
	config, err := readConfig(tree, cluster)
	if err != nil {
		return nil, nil, err
	}
	apps, err := render.FindApps(tree, config)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(apps, func(a rollout.App) bool { return a.Path == dir || a.Name == dir })
	if i < 0 {
		return nil, nil, usagef("--app %q is not among the apps of %s", dir, config.File)
	}
	built, err := newRenderer(c.streams).Render(tree, apps[i], rollout.Commit{})
	if err != nil {
		return nil, nil, err
	}
	files, notes, err := scaffold.Rollouts(tree, built)
	return files, rollout.Mapped(notes, func(n string) string { return "note     " + n }), err
}

func withSchemas(tree rollout.Tree, files []scaffold.File, kinds []string) ([]scaffold.File, error) {
	for _, kind := range kinds {
		name := scaffold.SchemaFolder + "/" + kind + ".json"
		_, exists, err := tree.Lookup(name)
		if err != nil {
			return nil, err
		}
		if exists {
			continue
		}
		data, err := schema.Of(kind)
		if err != nil {
			return nil, err
		}
		files = append(files, scaffold.File{Path: name, Content: string(data)})
	}
	return files, nil
}

func (c *initCommand) checked(tree rollout.Tree, cluster string) error {
	found, err := doctor.Check(tree, cluster, protected(), nil, newRenderer(c.streams), nil)
	if err != nil {
		return err
	}
	var all doctor.Report
	all.Add(found)
	if all.Errors > 0 {
		return fmt.Errorf("nothing is written, because the files would not be valid:\n%s",
			terminal.Report(all, terminal.Look{}))
	}
	return nil
}

func (c *initCommand) write(dir, cluster string, files []scaffold.File, told []string) error {
	if err := c.say(strings.Join(told, "\n")); err != nil {
		return err
	}
	for _, f := range files {
		verb := "wrote   "
		switch {
		case c.dryRun:
			verb = "would   "
		case f.Changes:
			verb = "changed "
		}
		err := c.say(verb + " " + f.Path)
		switch {
		case err != nil:
		case !c.dryRun:
			err = f.Write(dir)
		case !strings.HasSuffix(f.Path, ".json"):
			err = c.say("    " + strings.ReplaceAll(strings.TrimSuffix(f.Content, "\n"), "\n", "\n    ") + "\n")
		}
		if err != nil {
			return err
		}
	}
	if c.dryRun {
		return nil
	}
	folders := strings.Join(scaffold.Folders(files), " ")
	return c.say(fmt.Sprintf("next     git add %s, commit, push; gitrollout doctor --cluster %s; "+
		"gitrollout run --cluster %s", folders, cluster, cluster))
}
