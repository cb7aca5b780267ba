package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type renderCommand struct {
	streams
	source    sourceOptions
	target    clusterOptions
	withState bool
	commit    string
}

func newRender(s streams) *cobra.Command {
	c := &renderCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "render [APP]",
		Short: "Print the objects of an app as YAML",
		Long: `Print the objects of an app, or of all apps, as the newest commit renders them.

With --with-state it prints exactly the objects that should be in the cluster
now: those of the commit that the app is at, with the release's progress laid
over them. While a release is in flight that depends on pod counts, which are
read from the cluster.`,
		Example: `  gitrollout render shop
  gitrollout render shop --commit HEAD~3
  gitrollout render shop --with-state | kubectl diff --server-side -f -`,
		Args:              atMostOne("app"),
		ValidArgsFunction: completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.withState && c.commit != "" {
				return usagef("--with-state and --commit exclude each other: the state names the commit")
			}
			return c.run(cmd.Context(), args)
		},
	}
	c.source.register(cmd)
	c.target.register(cmd)
	cmd.Flags().BoolVar(&c.withState, "with-state", false, "what should be in the cluster now")
	cmd.Flags().StringVar(&c.commit, "commit", "", "render this `commit` instead of the newest one")
	return cmd
}

func (c *renderCommand) run(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := openWorld(ctx, c.source, c.streams)
	if err != nil {
		return err
	}
	if c.commit != "" {
		if err := w.rewind(ctx, c.commit); err != nil {
			return err
		}
	}
	apps, err := w.selected(args)
	if err != nil {
		return err
	}
	if c.withState {
		w.tryConnect(ctx, c.target, nil, c.streams)
	}
	for _, app := range apps {
		objects, err := c.objects(ctx, w, app)
		if err != nil {
			return fmt.Errorf("app %s: %w", app.Name, err)
		}
		if err := c.print(objects); err != nil {
			return err
		}
	}
	return nil
}

func (c *renderCommand) objects(ctx context.Context, w *world, app rollout.App) ([]rollout.Object, error) {
	if !c.withState {
		head := w.head(app)
		if head.Err != nil {
			return nil, head.Err
		}
		return head.Render.Objects, nil
	}
	in, err := w.input(ctx, app, time.Now())
	if err != nil {
		return nil, err
	}
	if in.State.Source == "" {
		_, err := fmt.Fprintf(c.err, "note: %s has no recorded state, so nothing of it should be in the cluster yet\n",
			app.Name)
		return nil, err
	}
	if in.State.Release != nil && w.client == nil {
		if _, err := fmt.Fprintf(c.err,
			"note: %s has a release in flight, and without the cluster's pod counts this is only how it begins; %s\n",
			app.Name, w.note); err != nil {
			return nil, err
		}
	}
	return w.desired(ctx, app, in)
}

// print writes one document for each object.
func (c *renderCommand) print(objects []rollout.Object) error {
	for _, o := range objects {
		data, err := yaml.Marshal(o.Told())
		if err != nil {
			return fmt.Errorf("print %s: %w", o.Ref(), err)
		}
		if _, err := fmt.Fprintf(c.out, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}

// desired is what should be in the cluster now, with the marks that gitrollout
// puts on each object that it applies.
func (w *world) desired(ctx context.Context, app rollout.App, in strategies.Input) ([]rollout.Object, error) {
	objects, err := w.gatherer(ctx, in.Head.Render, true).Desired(ctx, in, time.Time{})
	if err != nil {
		return nil, err
	}
	marked := make([]rollout.Object, len(objects))
	for i, o := range objects {
		marked[i] = withMarks(o, app.Name, w.source.cluster)
	}
	return marked, nil
}

func withMarks(o rollout.Object, app, cluster string) rollout.Object {
	out, metadata := maps.Clone(o), maps.Clone(o.Map("metadata"))
	labels, annotations := maps.Clone(o.Map("metadata", "labels")), maps.Clone(o.Map("metadata", "annotations"))
	if labels == nil {
		labels = map[string]any{}
	}
	if annotations == nil {
		annotations = map[string]any{}
	}
	labels[rollout.LabelApp], annotations[rollout.AnnotationCluster] = app, cluster
	metadata["labels"], metadata["annotations"] = labels, annotations
	out["metadata"] = metadata
	return out
}

// rewind makes the world look at another commit than the newest one.
func (w *world) rewind(ctx context.Context, commit string) error {
	id, err := fullCommit(ctx, commit)
	if err != nil {
		return err
	}
	return w.open(ctx, id)
}
