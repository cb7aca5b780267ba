package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

type appOptions struct {
	selector string
	matches  func(labels map[string]string) bool
}

func (o *appOptions) register(cmd *cobra.Command) {
	cmd.Args = o.check
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "",
		"instead of names: the apps whose workloads have these `labels`: team=pay,tier!=batch")
}

// check refuses an empty selector, because an empty variable in a script must not select all apps.
func (o *appOptions) check(cmd *cobra.Command, args []string) (err error) {
	switch {
	case o.selector == "" && len(args) == 0:
		return usagef("%s takes names of apps, or --selector; see: %s --help", cmd.CommandPath(), cmd.CommandPath())
	case o.selector != "" && len(args) > 0:
		return usagef("--selector and the app %s exclude each other; see: %s --help", args[0], cmd.CommandPath())
	}
	o.matches, err = labelled(o.selector)
	return err
}

func (o *appOptions) pick(ctx context.Context, w *console.Session, args []string) (
	names []string, unknown []error, err error,
) {
	if o.matches == nil {
		return slices.Compact(slices.Sorted(slices.Values(args))), nil, nil
	}
	renders, errs := make([]*rollout.Render, len(w.Tip.Apps)), make([]error, len(w.Tip.Apps))
	source.Each(len(renders), 4, func(i int) { renders[i], errs[i] = rendered(ctx, w, w.Tip.Apps[i]) })
	for i, app := range w.Tip.Apps {
		switch err := errs[i]; {
		case err != nil && !isOfOneApp(err):
			return nil, nil, err
		case err != nil:
			unknown = append(unknown, fmt.Errorf("%s: its labels are unknown: %w", app.Name, err))
		case o.matches(renders[i].Labels()):
			names = append(names, app.Name)
		}
	}
	if len(names) == 0 {
		none := fmt.Errorf("--selector %q matches no app of cluster %s; gitrollout list -o yaml shows the labels of all apps",
			o.selector, w.Cluster)
		return nil, nil, errors.Join(append([]error{none}, unknown...)...)
	}
	return names, unknown, nil
}

func rendered(ctx context.Context, w *console.Session, app rollout.App) (*rollout.Render, error) {
	head := w.Head(app)
	state, err := w.States.Of(app.Name)
	if head.Render != nil || err != nil || !isOfOneApp(head.Err) {
		return head.Render, head.Err
	}
	for _, r := range []*rollout.Release{{Commit: state.Source}, state.Release, state.Stable} {
		if r == nil || r.Commit == "" {
			continue
		}
		if built, err := w.RenderAt(ctx, app, r.Commit); err == nil || !isOfOneApp(err) {
			return built, err
		}
	}
	return nil, head.Err
}

// changes returns the apps' changes, and a note for each app without a change. If a named app's change is refused,
// changes fails. With a selector, changes skips the app with a note.
func (o *appOptions) changes(names []string, refused []error, change func(app string) (propose.Change, error)) (
	all []propose.Change, notes []string, err error,
) {
	for _, name := range names {
		c, err := change(name)
		switch {
		case err != nil && o.selector != "" && !isOfOneApp(err):
			return nil, nil, err
		case err != nil:
			refused = append(refused, err)
		case len(c.Edits) > 0:
			all = append(all, c)
		case o.selector != "":
			refused = append(refused, fmt.Errorf("%s: %s", name, c.Effect))
		default:
			notes = append(notes, c.Effect)
		}
	}
	switch failed := errors.Join(refused...); {
	case failed == nil:
		return all, notes, nil
	case o.selector != "" && len(all) == 0:
		return nil, nil, fmt.Errorf("nothing to do for the apps that match --selector %q:\n%w", o.selector, failed)
	case o.selector == "" && len(names) == 1:
		return nil, nil, failed
	case o.selector == "":
		return nil, nil, fmt.Errorf("nothing was pushed, because of %s:\n%w", rollout.Count(len(refused), "app"), failed)
	}
	return all, rollout.Mapped(refused, func(err error) string { return "skipped " + err.Error() }), nil
}

func isOfOneApp(err error) bool {
	return !errors.Is(err, git.ErrUnreachable) && !errors.Is(err, git.ErrAuth) && !errors.Is(err, context.Canceled)
}
