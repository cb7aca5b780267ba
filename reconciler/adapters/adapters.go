// Package adapters implements package reconciler's interfaces with packages git and cluster, and passes reports to
// consumers.
package adapters

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// Repository adapts a git.Repo to package reconciler.
type Repository struct{ *git.Repo }

// Between implements reconciler.Past.
func (r *Repository) Between(ctx context.Context, from, to string) ([]reconciler.Snapshot, error) {
	line, err := r.Line(ctx, from, to)
	return rollout.Mapped(line, func(s *git.Snapshot) reconciler.Snapshot { return s }), err
}

// Held implements reconciler.Repository.
func (r *Repository) Held(commit string) (reconciler.Snapshot, bool) {
	s, held := r.Repo.Held(commit)
	if !held {
		return nil, false
	}
	return s, true
}

// Branches implements reconciler.Branches.
func (r *Repository) Branches(ctx context.Context, repo string, known map[string]string) (map[string]string, error) {
	return git.Branches(ctx, r.Repo, repo, known)
}

// Push implements reconciler.Repository.
func (r *Repository) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	return r.Repo.Push(ctx, updates)
}

// Applier writes to the cluster with a cluster.Client.
type Applier struct{ Client *cluster.Client }

// Check implements reconciler.Applier.
func (a Applier) Check(ctx context.Context, app string, objects []rollout.Object) error {
	return final(a.Client.Check(ctx, app, objects))
}

func final(err error) error {
	refused, is := errors.AsType[*cluster.Error](err)
	if is && !refused.Temporary() && refused.Reason != cluster.Unexpected {
		return &rollout.InvalidError{Msg: "the cluster refuses " + refused.Error(), Reason: held[refused.Reason]}
	}
	return err
}

// Observer reads the cluster with a cluster.Client.
type Observer struct{ *cluster.Client }

// OtherOwners implements reconciler.Observer. If a kind cannot be read, the error is an InvalidError.
func (c Observer) OtherOwners(
	ctx context.Context, app string, o []rollout.Object, t time.Time,
) ([]rollout.Foreign, error) {
	all, err := c.Client.OtherOwners(ctx, app, o, t)
	return all, final(err)
}

// Jobs manages the hook Jobs of releases.
type Jobs struct{ *cluster.Client }

// CheckJob implements reconciler.Jobs.
func (j Jobs) CheckJob(ctx context.Context, object map[string]any) error {
	return final(j.Client.CheckJob(ctx, object))
}

var held = map[cluster.Reason]rollout.HeldReason{
	cluster.Forbidden: rollout.HeldForbidden, cluster.Contested: rollout.HeldContested,
}

// Apply implements reconciler.Applier. If another owner has an object, the error is an InvalidError.
func (a Applier) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	_, err := a.Client.Apply(ctx, app, objects)
	if refused, is := errors.AsType[*cluster.Error](err); is && refused.Reason == cluster.Contested {
		return &rollout.InvalidError{Msg: refused.Error(), Reason: rollout.HeldContested}
	}
	return err
}

// Prune implements reconciler.Applier.
func (a Applier) Prune(ctx context.Context, app string, candidates []rollout.Ref) ([]rollout.Ref, error) {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	gone, _, err := a.Client.Prune(ctx, app, candidates)
	return gone, err
}

// Evict implements reconciler.Applier.
func (a Applier) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	ctx, cancel := Outlive(ctx)
	defer cancel()
	return a.Client.Evict(ctx, namespace, pod)
}

// Beating returns a transport that records a heartbeat for each request to the cluster.
func Beating(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		reconciler.Heartbeat(r.Context())
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Spread lengthens a duration by up to a tenth, so that processes do not retry at the same time.
func Spread(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// Grace is how long a pass may continue after the process is told to stop. Kubernetes kills the process after 30 s.
const Grace = 20 * time.Second

// Outlive returns a context that outlives its parent by Grace.
func Outlive(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.AfterFunc(Grace, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}
