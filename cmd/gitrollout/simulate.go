package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate"
	"gitrollout.dev/gitrollout/views/status"
)

type simulateCommand struct {
	streams
	source sourceOptions
	output outputOption
	dir    string
	commit string
	update bool
}

func newSimulate(s streams) *cobra.Command {
	c := &simulateCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "simulate SCRIPT",
		Short: "Play a release in memory: what would happen, and when",
		Long: `Play a script of a release against your own manifests, with the real
reconciler, a model of Kubernetes and a clock that does not wait. It needs
neither a cluster nor a network, changes nothing, and takes milliseconds.

SCRIPT is a file, or - for the standard input. Commands stand at the margin:

  start                    the reconciler starts (crash: it starts anew)
  push v2                  new image tags for all apps (push shop=v2: for one)
  push files NAME          the files below NAME/ in the script
  revert [APP]             the newest commit that was another release, again
  promote [APP] [STEP]     as the command: the gate that is shut opens, or all up
                           to STEP; also hold, abort, retry; withdraw undoes it
  merge [APP] [promote]    merge the open proposal (or: revert)
  +30s                     time passes; what is due on the way happens
  never v2, slow v2 30s    pods of a version never become ready, or late
  heal v2, kill v1 2       they do become ready; two pods of v1 die
  scale web 5              an autoscaler sets the replicas
  measure errors Failed    what a metric measures from now on: a phase, or a
                           result for its conditions: measure errors [0.2]
  job migrate fails        how the Jobs of a hook end from now on (or: runs)
  git down, api down       and git up, api up

Below a command, indented, may stand what it is to bring:

  commit TEXT              a transition is recorded whose subject has TEXT
  expect PART | PART       the status of an app has all of these parts
  error TEXT               a pass fails with TEXT

The output is the script with everything that happened, in the same form, so
that lines of it can be kept as expectations. v2 is the tag of the first
container's image, #1 the first push after the beginning. The exit code is 1 if
an expectation was not met.

The repository is the one in --dir, a commit with --repo or --commit, or else
what the script holds: it may be a txtar archive of files, whose timeline is the
file called timeline.`,
		Example: `  printf 'start\npush v2\n+10m\npromote\n' | gitrollout simulate - --dir .
  gitrollout simulate release.txtar
  gitrollout simulate release.txtar --update     # keep what happens as expected`,
		Args: exactlyOne("script"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.source.register(cmd)
	c.output.register(cmd, "json", "yaml")
	cmd.Flags().StringVar(&c.dir, "dir", "", "the repository is this `folder`, as it is")
	cmd.Flags().StringVar(&c.commit, "commit", "", "the repository is this `commit`")
	cmd.Flags().BoolVar(&c.update, "update", false, "rewrite what the script expects with what happens")
	return cmd
}

func (c *simulateCommand) run(cmd *cobra.Command, file string) error {
	script, err := c.read(file)
	if err != nil {
		return err
	}
	o, err := c.world(cmd, script)
	if err != nil {
		return err
	}
	story, err := simulate.NewStory(o)
	if err != nil {
		return err
	}
	timeline, err := story.Play(script.timeline)
	if err != nil {
		return usagef("script %s: %v", file, err)
	}
	if c.update {
		return script.rewrite(file, timeline.String())
	}
	if done, err := c.output.write(c.streams, timeline); err != nil {
		return err
	} else if !done {
		if err := c.say(timeline.String()); err != nil {
			return err
		}
	}
	if timeline.Failed > 0 {
		return &failure{code: exitFailed, err: fmt.Errorf("script %s: %s not met", file,
			status.Count(timeline.Failed, "expectation"))}
	}
	return nil
}

// playbook is a script as it was read.
type playbook struct {
	archive  *txtar.Archive // nil if it is a timeline alone
	timeline string
	files    map[string]string
}

func (c *simulateCommand) read(file string) (playbook, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(c.in)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return playbook{}, usagef("%v", err)
	}
	archive := txtar.Parse(data)
	if len(archive.Files) == 0 {
		return playbook{timeline: string(data)}, nil
	}
	p := playbook{archive: archive, files: map[string]string{}}
	for _, f := range archive.Files {
		if f.Name == "timeline" {
			p.timeline = string(f.Data)
			continue
		}
		p.files[f.Name] = string(f.Data)
	}
	if p.timeline == "" {
		return p, usagef("script %s has files and no timeline: write the commands below a line -- timeline --", file)
	}
	return p, nil
}

// rewrite keeps a timeline in the file that it was read from.
func (p playbook) rewrite(file, timeline string) error {
	if file == "-" {
		return usagef("--update rewrites a file, and the script is the standard input")
	}
	data := []byte(timeline)
	if p.archive != nil {
		for i, f := range p.archive.Files {
			if f.Name == "timeline" {
				p.archive.Files[i].Data = data
			}
		}
		data = txtar.Format(p.archive)
	}
	return os.WriteFile(file, data, 0o644)
}

// world is the repository that the script is played in.
func (c *simulateCommand) world(cmd *cobra.Command, script playbook) (simulate.StoryOptions, error) {
	o := simulate.StoryOptions{
		Files: map[string]string{}, Links: map[string]string{}, Extra: script.files,
		Options: reconciler.Options{Renderer: newRenderer(streams{}, nil), Log: slog.New(slog.DiscardHandler)},
	}
	tree, err := c.tree(cmd)
	if err != nil {
		return o, err
	}
	if tree != nil {
		if err := load(tree, "", &o); err != nil {
			return o, err
		}
	} else {
		o.Files = script.files
	}
	o.Cluster, err = clusterIn(o.Files, c.source.cluster)
	return o, err
}

// tree is the repository that the command line names, nil if it is the script.
func (c *simulateCommand) tree(cmd *cobra.Command) (render.Tree, error) {
	named := cmd.Flags().Changed("repo") || cmd.Flags().Changed("branch") || c.commit != ""
	switch {
	case named && c.dir != "":
		return nil, usagef("--dir and --repo, --branch or --commit exclude each other")
	case named:
		return c.commitTree(cmd.Context())
	case c.dir != "":
		return openDir(c.dir)
	default:
		return nil, nil
	}
}

func (c *simulateCommand) commitTree(ctx context.Context) (render.Tree, error) {
	v := validateCommand{streams: c.streams, source: c.source, commit: c.commit}
	return v.commitTree(ctx)
}

// maxLoaded bounds what a simulation holds in memory: manifests are small, and a
// repository that is not is mostly something else.
const maxLoaded = 256 << 20

// load reads a folder of a tree and all below it.
func load(tree render.Tree, dir string, o *simulate.StoryOptions) error {
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list %q: %w", dir, err)
	}
	size := 0
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch e.Kind {
		case rollout.Dir:
			if err := load(tree, name, o); err != nil {
				return err
			}
		case rollout.File, rollout.Symlink:
			data, err := tree.ReadBlob(e.ID)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if size += len(data); size > maxLoaded {
				return usagef("folder %q holds more than %d MB of files, more than a simulation takes: name a smaller --dir", dir,
					maxLoaded>>20)
			}
			if e.Kind == rollout.Symlink {
				o.Links[name] = string(data)
			} else {
				o.Files[name] = string(data)
			}
		}
	}
	return nil
}

// clusterIn is the cluster that is named, or the only one that the files have a
// configuration of.
func clusterIn(files map[string]string, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	var found []string
	for name := range files {
		if cluster, ok := strings.CutPrefix(path.Dir(name), ".gitrollout/"); ok && path.Base(name) == "config.yaml" &&
			!strings.Contains(cluster, "/") {
			found = append(found, cluster)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &rollout.InvalidError{File: rollout.ConfigPath("<cluster>"),
			Msg: "does not exist: there is no cluster to simulate",
			Fix: "name the repository with --dir, or put its files into the script"}
	default:
		return "", usagef("there are several clusters; name one with --cluster: %s", strings.Join(found, ", "))
	}
}
