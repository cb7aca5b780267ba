package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

const maxWorkers = 4

// Listing returns the selected apps' status, or an error if no app can be read.
func (w *Session) Listing(ctx context.Context, args []string, now time.Time) (status.Listing, error) {
	apps, err := w.Selected(args)
	if err != nil {
		return status.Listing{}, err
	}
	notes := []string{w.Note, w.Warning()}
	for _, folder := range w.Tip.InvalidNames {
		notes = append(notes, folder.Err.Error())
	}
	notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
	l := status.Listing{Cluster: w.Cluster, Note: strings.Join(notes, ";\n"), Apps: make([]status.App, len(apps))}
	errs := make([]error, len(apps))
	source.Each(len(apps), maxWorkers, func(i int) { l.Apps[i], errs[i] = w.look(ctx, apps[i], now) })
	l.SetChanges()
	if text := w.Warning(); text != "" && len(args) > 0 { // "get NAME" shows no note of the listing
		l.Apps[0].Warnings = append(slices.Clone(l.Apps[0].Warnings), text)
	}
	if slices.Contains(errs, nil) { // rows of unreadable apps show errors
		return l, nil
	}
	return l, errors.Join(errs...)
}

// look caches a healthy app's status until Touch, or until a branch changes.
func (w *Session) look(ctx context.Context, app rollout.App, now time.Time) (status.App, error) {
	w.mu.Lock()
	a, known := w.seen[app.Name]
	before := w.touched[app.Name]
	w.mu.Unlock()
	if known {
		return a, nil
	}
	a, err := w.status(ctx, app, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && a.Phase == rollout.Healthy && a.Held == nil && a.Note == w.Note && w.touched[app.Name] == before {
		w.seen[app.Name] = a
	}
	return a, err
}

// Touch drops an app's cached status.
func (w *Session) Touch(app string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, app)
	w.touched[app]++
}

func (w *Session) status(ctx context.Context, app rollout.App, now time.Time) (a status.App, err error) {
	unknown := func(reason rollout.HeldReason, why string) status.App {
		return status.App{App: app.Name, Cluster: w.Cluster, Path: app.Path, Phase: status.Unknown, Note: w.Note,
			Held: &rollout.Held{Reason: reason, Message: why}}
	}
	defer func() {
		if problem := recover(); problem != nil {
			a, err = unknown("Panicked", fmt.Sprintf("the app cannot be shown, because gitrollout panicked: %v", problem)), nil
		}
	}()
	in, err := w.Input(ctx, app, now)
	if rollout.IsInvalid(err) {
		return unknown("InvalidState", "the app's state file cannot be read: "+err.Error()), nil
	}
	if err != nil {
		return unknown("Unavailable", "the app cannot be read: "+err.Error()), fmt.Errorf("app %s: %w", app.Name, err)
	}
	if w.Client != nil {
		source.LookAtHooks(ctx, &in, w.Client)
	}
	a = status.Of(in, w.Cluster, w.proposals(ctx, in))
	a.Note = w.Note
	if w.Detail && a.Waiting == "" && a.Held == nil && isUnseen(in) {
		a.Waiting = "the next poll: " + Polling(w)
	}
	if why := in.Observed.Unseen; why != "" {
		a.Note = strings.TrimPrefix(a.Note+"; not observed at present, and the last state is shown: "+why, "; ")
	}
	remote := w.Repo.Remote().String()
	for i, n := range a.Next {
		a.Next[i].Command = w.Command(n.Command)
		if n.Branch != "" {
			a.Next[i].URL = forge.PagesOf(w.Config().Forge, remote).Pull(w.Branch, n.Branch)
		}
	}
	return a, nil
}

// Polling names the commit that was read and the reconciler's interval.
func Polling(w *Session) string {
	return fmt.Sprintf("%s is at %s, and the reconciler reads Git every %s", w.Branch, rollout.ShortID(w.Heads.Main),
		w.Config().Interval)
}

func isUnseen(in strategies.Input) bool {
	if in.State.Release != nil && (in.Observed.Workloads == nil || len(in.Observed.Unread) > 0) {
		return false
	}
	s := strategies.Decide(in).State
	return s.Source != in.State.Source || s.Release != nil && !s.Release.Same(in.State.Release)
}

func (w *Session) proposals(ctx context.Context, in strategies.Input) map[string]string {
	all := maps.Clone(w.Heads.Proposals)
	for kind, is := range map[rollout.ProposalKind]func(rollout.Merge) bool{
		rollout.ProposePromotion: func(m rollout.Merge) bool { return propose.Mergeable(w.Cluster, in, m) },
		rollout.ProposeRevert:    func(m rollout.Merge) bool { return w.restores(ctx, in, m) },
	} {
		branch := propose.BranchOf(kind, w.Cluster, in, all)
		if all[branch] == "" || !w.Detail {
			continue
		}
		if m, err := w.Repo.Merge(ctx, all[branch], w.Heads.Main); err == nil && !is(m) {
			delete(all, branch)
		}
	}
	return all
}

// restores reports whether a merge restores the stable version. If the versions cannot be compared, any merge without
// conflicts counts.
func (w *Session) restores(ctx context.Context, in strategies.Input, m rollout.Merge) bool {
	if !propose.WantedBy(in).Revert || in.State.Stable == nil || in.Head.Render == nil {
		return m.Clean
	}
	stable, err := w.RenderAt(ctx, in.App, in.State.Stable.Commit)
	if err != nil {
		return m.Clean
	}
	tree, err := w.Repo.Snapshot(ctx, stable.Commit.ID)
	return err == nil && propose.Restores(m, w.Tip.Tree, tree, in.Head.Render, stable)
}

// Desired returns an app's desired objects with gitrollout's metadata.
func (w *Session) Desired(ctx context.Context, app rollout.App, in strategies.Input) ([]rollout.Object, error) {
	objects, err := w.gatherer(ctx, in.Head.Render, true, new(error)).Desired(ctx, in, time.Time{})
	return w.marked(app, objects), err
}

// WithState returns the objects of "gitrollout render --with-state". The note says which facts are not observed, and
// why.
func WithState(ctx context.Context, w *Session, app rollout.App, now time.Time) (
	objects []rollout.Object, note string, err error,
) {
	in, err := w.Input(ctx, app, now)
	switch {
	case err != nil:
		return nil, "", err
	case in.State.Source == "":
		return nil, app.Name + " has no recorded state, so none of its objects should be in the cluster yet", nil
	case in.State.Release != nil && (in.Observed.Workloads == nil || len(in.Observed.Unread) > 0):
		note = strings.TrimSuffix(app.Name+" has a release in flight; without the cluster's pod counts, only the start of "+
			"the release is shown; "+w.Note, "; ")
	}
	objects, err = w.Desired(ctx, app, in)
	return objects, note, err
}

// Wanted returns an app's desired objects. Without a recorded commit, it returns the head's objects.
func (w *Session) Wanted(ctx context.Context, app rollout.App, in strategies.Input) ([]rollout.Object, error) {
	switch {
	case in.State.Source != "":
		return w.Desired(ctx, app, in)
	case in.Head.Err != nil:
		return nil, in.Head.Err
	}
	return w.marked(app, source.Applied(in.Head.Render)), nil
}

func (w *Session) marked(app rollout.App, objects []rollout.Object) []rollout.Object {
	return rollout.Mapped(objects, func(o rollout.Object) rollout.Object {
		o = o.Copy()
		o.Set(app.Name, "metadata", "labels", rollout.LabelApp)
		o.Set(w.Cluster, "metadata", "annotations", rollout.AnnotationCluster)
		return o
	})
}
