package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// report is what validate finds, and what it prints as JSON or YAML.
type report struct {
	Clusters []clusterReport `json:"clusters"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
}

type clusterReport struct {
	Cluster  string      `json:"cluster"`
	Errors   []finding   `json:"errors,omitempty"` // of the configuration and of promotion files
	Warnings []string    `json:"warnings,omitempty"`
	Apps     []appReport `json:"apps,omitempty"`
}

type appReport struct {
	App      string       `json:"app"`
	Path     string       `json:"path"`
	Release  rollout.Hash `json:"release,omitempty"` // what a release of it would be called
	Objects  int          `json:"objects"`
	Staged   int          `json:"staged"` // workloads that a Rollout document moves
	Error    *finding     `json:"error,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
}

type finding struct {
	File    string `json:"file,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

func (f finding) String() string {
	return (&rollout.InvalidError{File: f.File, Field: f.Field, Msg: f.Message, Fix: f.Fix}).Error()
}

func findingOf(err error) finding {
	var invalid *rollout.InvalidError
	if errors.As(err, &invalid) {
		return finding{File: invalid.File, Field: invalid.Field, Message: invalid.Msg, Fix: invalid.Fix}
	}
	return finding{Message: err.Error()}
}

type validateCommand struct {
	streams
	source sourceOptions
	output outputOption
	color  colorOption
	commit string
}

func newValidate(s streams) *cobra.Command {
	c := &validateCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "validate [PATH]",
		Short: "Check configuration, apps and promotion files, for CI",
		Long: `Check everything that gitrollout reads from your branch: the configuration of
each cluster, every app (rendered in full, with its Rollout documents), the
promotion files and the freeze. What would hold an app in the cluster is an error here.

It reads the folder PATH (default: the current one) and needs neither a cluster
nor a network. With --repo or --commit it reads a commit instead.

A cluster's configuration is .gitrollout/<cluster>/config.yaml:

    apiVersion: gitrollout.dev/v1alpha1
    kind: Config
    apps:
    - path: apps/*/overlays/prod

The exit code is 1 if there are errors; warnings do not count.`,
		Example: `  gitrollout validate
  gitrollout validate --cluster prod-eu -o json
  gitrollout validate --repo https://git.example.com/shop.git --branch main`,
		Args: atMostOne("path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := c.tree(cmd, args)
			if err != nil {
				return err
			}
			return c.run(tree)
		},
	}
	c.source.register(cmd)
	c.output.register(cmd, "json", "yaml")
	c.color.register(cmd)
	cmd.Flags().StringVar(&c.commit, "commit", "", "check this `commit`")
	return cmd
}

// tree is the folder, or a commit if the command line names one. The
// environment's defaults do not count here: they are for commands that need a
// repository.
func (c *validateCommand) tree(cmd *cobra.Command, args []string) (render.Tree, error) {
	named := cmd.Flags().Changed("repo") || cmd.Flags().Changed("branch") || c.commit != ""
	switch {
	case named && len(args) > 0:
		return nil, usagef("a PATH and --repo, --branch or --commit exclude each other")
	case named:
		return c.commitTree(cmd.Context())
	case len(args) == 1:
		return openDir(args[0])
	default:
		return openDir(".")
	}
}

func (c *validateCommand) commitTree(ctx context.Context) (render.Tree, error) {
	if err := checkArgument(c.source.repo); err != nil {
		return nil, err
	}
	if c.source.repo == "" {
		repo, err := workingCopy(ctx)
		if err != nil {
			return nil, err
		}
		c.source.repo = repo
	}
	options, err := c.source.options()
	if err != nil {
		return nil, err
	}
	repo, err := openRepository(ctx, options)
	if err != nil {
		return nil, err
	}
	id := c.commit
	err = slowly(c.streams, "reading "+repo.Remote().String(), func() error {
		heads, err := repo.Fetch(ctx)
		if id == "" {
			id = heads.Main
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if id, err = fullCommit(ctx, id); err != nil {
		return nil, err
	}
	return repo.Snapshot(ctx, id)
}

func (c *validateCommand) run(tree render.Tree) error {
	clusters, err := source.Clusters(tree)
	if err != nil {
		return err
	}
	if c.source.cluster != "" {
		if !slices.Contains(clusters, c.source.cluster) {
			_, err := readConfig(tree, c.source.cluster)
			return err
		}
		clusters = []string{c.source.cluster}
	}
	if len(clusters) == 0 {
		return &failure{code: exitFailed, err: &rollout.InvalidError{File: rollout.ConfigPath("<cluster>"), Msg: "does not exist: there is no cluster to check", Fix: "commit a Config; see: gitrollout help validate"}}
	}
	var r report
	for _, cluster := range clusters {
		checked, err := check(tree, cluster)
		if err != nil {
			return err
		}
		r.add(checked)
	}
	if done, err := c.output.write(c.streams, r); err != nil {
		return err
	} else if !done {
		if _, err := fmt.Fprint(c.out, drawReport(r, c.color.lookOf(c.out))); err != nil {
			return err
		}
	}
	if r.Errors > 0 {
		return silent(exitFailed)
	}
	return nil
}

func (r *report) add(c clusterReport) {
	r.Clusters = append(r.Clusters, c)
	r.Errors += len(c.Errors)
	r.Warnings += len(c.Warnings)
	for _, a := range c.Apps {
		if a.Error != nil {
			r.Errors++
		}
		r.Warnings += len(a.Warnings)
	}
}

// check looks at one cluster's part of a tree. An error means that the tree
// cannot be read.
func check(tree render.Tree, cluster string) (clusterReport, error) {
	r := clusterReport{Cluster: cluster}
	config, err := readConfig(tree, cluster)
	var apps []rollout.App
	if err == nil {
		apps, err = render.FindApps(tree, config)
	}
	if isInvalid(err) {
		r.Errors = append(r.Errors, findingOf(err))
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if len(apps) == 0 {
		r.Warnings = append(r.Warnings, config.File+": apps: no path matches a folder with a kustomization")
	}
	renderer := newRenderer()
	known := map[string]bool{}
	for _, app := range apps {
		known[app.Name] = true
		checked, err := checkApp(renderer, tree, app)
		if err != nil {
			return r, err
		}
		r.Apps = append(r.Apps, checked)
	}
	if _, err := readFreeze(tree, cluster); isInvalid(err) {
		r.Errors = append(r.Errors, findingOf(err))
	} else if err != nil {
		return r, err
	}
	return r, r.checkPromotions(tree, known)
}

func checkApp(renderer *render.Renderer, tree render.Tree, app rollout.App) (appReport, error) {
	a := appReport{App: app.Name, Path: app.Path}
	built, err := renderer.Render(tree, app, rollout.Commit{})
	if isInvalid(err) {
		found := findingOf(err)
		a.Error = &found
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("app %s: %w", app.Name, err)
	}
	a.Release, a.Objects, a.Staged, a.Warnings = built.Release(), len(built.Objects), len(built.Specs), built.Warnings
	return a, nil
}

func (r *clusterReport) checkPromotions(tree render.Tree, known map[string]bool) error {
	dir := strings.TrimSuffix(rollout.PromotionPath(r.Cluster, "x"), "/x.yaml")
	entries, err := source.ReadDir(tree, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := dir + "/" + e.Name
		app, isYAML := strings.CutSuffix(e.Name, ".yaml")
		if e.Kind != rollout.File || !isYAML {
			r.Warnings = append(r.Warnings, file+": is not read: promotion files are called <app>.yaml")
			continue
		}
		data, err := tree.ReadBlob(e.ID)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if _, err := rollout.ParsePromotion(file, data); err != nil {
			r.Errors = append(r.Errors, findingOf(err))
		}
		if !known[app] {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: cluster %s has no app %q", file, r.Cluster, app))
		}
	}
	return nil
}

// drawReport shows what was found: a line for each app, and below it what is
// wrong with it.
func drawReport(r report, k look) string {
	var b strings.Builder
	warn := func(warnings []string) {
		for _, w := range warnings {
			b.WriteString("  " + k.paint(yellow, "warning") + "  " + clean(w) + "\n")
		}
	}
	for _, c := range r.Clusters {
		b.WriteString(k.paint(bold, c.Cluster) + "\n")
		for _, f := range c.Errors {
			b.WriteString("  " + k.paint(red, "error") + "    " + clean(f.String()) + "\n")
		}
		warn(c.Warnings)
		names := 0
		for _, a := range c.Apps {
			names = max(names, width(a.App))
		}
		for _, a := range c.Apps {
			if a.Error != nil {
				b.WriteString("  " + k.paint(red, "error") + "    " + pad(a.App, names) + "  " + clean(a.Error.String()) + "\n")
				continue
			}
			text := fmt.Sprintf("%s, %s", count(a.Objects, "object"), count(a.Staged, "staged workload"))
			b.WriteString("  " + k.paint(green, "ok") + "       " + pad(a.App, names) + "  " + k.paint(dim, text) + "\n")
			warn(a.Warnings)
		}
	}
	b.WriteString(fmt.Sprintf("%s, %s\n", count(r.Errors, "error"), count(r.Warnings, "warning")))
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
