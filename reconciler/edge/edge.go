// Package edge is where the loop meets Git, the cluster and those who are told: the mirror of package git and the
// client of package cluster, as the interfaces of package reconciler. What has begun at one of them is finished though
// the program is told to stop, and what an API server will never accept is wrong input.
package edge

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// The packages of this program meet here.
var (
	_ reconciler.Repository = (*Repository)(nil)
	_ reconciler.Snapshot   = (*git.Snapshot)(nil)
	_ reconciler.Renderer   = (*render.Renderer)(nil)
	_ reconciler.Observer   = Observer{}
	_ reconciler.Applier    = Applier{}
)

// Repository is a git.Repo as the loop sees it.
type Repository struct{ *git.Repo }

// Snapshot is reconciler.Repository's.
func (r *Repository) Snapshot(ctx context.Context, commit string) (reconciler.Snapshot, error) {
	s, err := r.Repo.Snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Between is reconciler.Past's.
func (r *Repository) Between(ctx context.Context, from, to string) ([]reconciler.Snapshot, error) {
	line, err := r.Line(ctx, from, to)
	all := make([]reconciler.Snapshot, len(line))
	for i, s := range line {
		all[i] = s
	}
	return all, err
}

// Held is reconciler.Repository's.
func (r *Repository) Held(commit string) (reconciler.Snapshot, bool) {
	s, held := r.Repo.Held(commit)
	if !held {
		return nil, false
	}
	return s, true
}

// Push is reconciler.Repository's. A push that has begun is finished even when the program is told to stop.
func (r *Repository) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	return r.Repo.Push(ctx, updates)
}

// Applier is the writing half of a cluster.Client. A write that has begun is
// finished even when the program is told to stop.
type Applier struct{ Client *cluster.Client }

// Check is reconciler.Applier's. What the API server will not accept however often it is asked is wrong input.
func (a Applier) Check(ctx context.Context, app string, objects []rollout.Object) error {
	return final(a.Client.Check(ctx, app, objects))
}

// final makes wrong input of the API server's final no.
func final(err error) error {
	var refused *cluster.Error
	if errors.As(err, &refused) && !refused.Temporary() && refused.Reason != cluster.Unexpected {
		return &rollout.InvalidError{Msg: "the cluster refuses " + refused.Error(), Reason: held[refused.Reason]}
	}
	return err
}

// Observer is the reading half of a cluster.Client.
type Observer struct{ *cluster.Client }

// Foreign is reconciler.Observer's. What may never be looked at is wrong input.
func (c Observer) Foreign(ctx context.Context, app string, o []rollout.Object, t time.Time) ([]rollout.Foreign, error) {
	all, err := c.Client.Foreign(ctx, app, o, t)
	return all, final(err)
}

// Jobs are the Jobs around releases.
type Jobs struct{ *cluster.Client }

// CheckJob is reconciler.Jobs'.
func (j Jobs) CheckJob(ctx context.Context, object map[string]any) error {
	return final(j.Client.CheckJob(ctx, object))
}

// held are the reasons of the cluster that are reasons of their own to hold an app.
var held = map[cluster.Reason]rollout.HeldReason{
	cluster.Forbidden: rollout.HeldForbidden, cluster.Contested: rollout.HeldContested,
}

// Apply is reconciler.Applier's. That an object is somebody else's is wrong input.
func (a Applier) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	_, err := a.Client.Apply(ctx, app, objects)
	var refused *cluster.Error
	if errors.As(err, &refused) && refused.Reason == cluster.Contested {
		return &rollout.InvalidError{Msg: refused.Error(), Reason: rollout.HeldContested}
	}
	return err
}

// Prune is reconciler.Applier's.
func (a Applier) Prune(ctx context.Context, app string, candidates []rollout.Ref) ([]rollout.Ref, error) {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	gone, _, err := a.Client.Prune(ctx, app, candidates)
	return gone, err
}

// Evict is reconciler.Applier's.
func (a Applier) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	return a.Client.Evict(ctx, namespace, pod)
}

// Beating has each request to the cluster be a sign of life of the work that it is sent for.
func Beating(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		reconciler.Beat(r.Context())
		return next.RoundTrip(r)
	})
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip is http.RoundTripper's.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Spread lengthens a time by up to a tenth, so that the many who were stopped by one outage come back one by one.
func Spread(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// Grace is how long a pass may go on after the program was told to stop. Kubernetes kills a pod after 30 seconds.
const Grace = 20 * time.Second

// Outlive returns a context that ends a while after its parent.
func Outlive(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.AfterFunc(Grace, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}
