package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Gatherer puts together what a decision about an app depends on. The loop, the commands and the pages
// differ in where renders come from and in nothing else.
type Gatherer struct {
	// RenderAt returns an app as of a commit, as Reader.Render does. An error that is ErrNotReady means that
	// nobody knows yet; any other one that it cannot be had.
	RenderAt func(ctx context.Context, app rollout.App, commit string) (*rollout.Render, error)
	// Observe shows the cluster, as the loop's Observer does. nil observes nothing.
	Observe func(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed
	// Know tells whoever observes of kinds of workloads that the app has and that not every cluster serves. nil tells
	// nobody.
	Know func(kinds []rollout.Partitioned)
}

// ErrNotReady is what RenderAt returns while a commit is still being fetched or rendered.
var ErrNotReady = errors.New("is still being read")

// App is what Git says of one app: the users' branch, and the record.
type App struct {
	rollout.App
	Head      strategies.Head
	Promotion *rollout.Promotion // nil if there is none that counts
	Calendar  rollout.Calendar
	State     rollout.State
}

// Gather returns what a decision about an app depends on, observed last: to read a commit takes time. The
// error is ErrNotReady while the commit that the app is at is being read; what does not depend on that is
// gathered all the same. One that is gone leaves Source nil: the state then follows the head.
func (g Gatherer) Gather(ctx context.Context, a App, now time.Time) (in strategies.Input, err error) {
	in = strategies.Input{
		Now: now, App: a.App, Head: a.Head, State: a.State, Promotion: a.Promotion, Calendar: a.Calendar,
	}
	in.App = a.State.Named(a.App)
	if a.State.Source != "" {
		in.Source, err = g.RenderAt(ctx, in.App, a.State.Source)
	}
	if !errors.Is(err, ErrNotReady) {
		err = nil
	}
	if left := a.State.Release; left != nil && a.State.Phase == rollout.Aborting {
		var unread error
		in.Left, unread = g.RenderAt(ctx, in.App, left.Commit)
		in.Unread = errors.Is(unread, ErrNotReady)
	}
	g.Look(&in)
	return in, err
}

// Look observes the cluster for a decision anew.
func (g Gatherer) Look(in *strategies.Input) {
	if kinds := rollout.Partitioneds(in.Head.Render, in.Source); g.Know != nil && len(kinds) > 0 {
		g.Know(kinds)
	}
	if g.Observe != nil {
		in.Observed = g.Observe(in.App.Name, Workloads(*in), Routes(*in))
	}
}

// Desired is what the cluster should hold of an app: the one law. Applied is since when the
// cluster routes as the state asks, as in strategies.View.
func (g Gatherer) Desired(ctx context.Context, in strategies.Input, applied time.Time) ([]rollout.Object, error) {
	s := in.State
	source, err := g.RenderAt(ctx, in.App, s.Source)
	if err != nil {
		return nil, fmt.Errorf("commit %s that the app is at: %w", rollout.ShortID(s.Source), err)
	}
	view := strategies.View{Now: in.Now, Applied: applied, Source: source, Observed: in.Observed}
	switch {
	case !strategies.NeedsStable(s, view):
	case s.Stable != nil && source.Release() == s.Stable.Hash: // it is stable, and pods of the one before are kept
		view.Stable = source
	default:
		if view.Stable, err = g.RenderAt(ctx, in.App, s.Stable.Commit); err != nil {
			return nil, fmt.Errorf("commit %s that is stable: %w", rollout.ShortID(s.Stable.Commit), err)
		}
	}
	return strategies.Desired(s, view)
}

// Workloads are all Deployments that the app has in Git or had before, in order.
func Workloads(in strategies.Input) []rollout.Workload {
	set := map[string]rollout.Workload{}
	if in.Head.Render != nil {
		for w := range in.Head.Render.Templates {
			set[w.String()] = w
		}
	}
	for _, w := range in.State.Workloads() {
		set[w.String()] = w
	}
	return rollout.Mapped(slices.Sorted(maps.Keys(set)), func(name string) rollout.Workload { return set[name] })
}

// Routes are the objects of the app whose status routers write.
func Routes(in strategies.Input) []rollout.Ref {
	if r := cmp.Or(in.Head.Render, in.Source); r != nil {
		return strategies.Watched(r)
	}
	return nil
}

// HeadOf is what the users' branch asks for of an app, with what is wrong about the promotion file.
func HeadOf(commit rollout.Commit, built *rollout.Render, err error, promotion Promotion) strategies.Head {
	head := strategies.Head{Commit: commit, Render: built, Err: err}
	if head.Err == nil {
		head.Err = promotion.Err
	}
	if head.Err != nil {
		head.Render = nil
	}
	return head
}
