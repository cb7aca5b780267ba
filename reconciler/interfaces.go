package reconciler

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Snapshot is one commit that can be read without a worktree.
type Snapshot = source.Snapshot

// Repository is a mirror of the Git server. Fetch looks the branches up and fetches new commits; an error means that
// nothing is known to have changed. Bring fetches commits by their ids with one request, and returns those that the
// server does not have any more. Held reads a commit that is here, without the network. Push is atomic where the server
// can; it returns the new commits by branch, or an error that wraps rollout.ErrConflict. After any other error the
// outcome is unknown until the next Fetch, and the same push may be repeated. A Push may run beside a Fetch.
type Repository interface {
	Fetch(ctx context.Context) (rollout.Heads, error)
	Bring(ctx context.Context, commits []string) (gone []string, err error)
	Held(commit string) (tree Snapshot, held bool)
	Push(ctx context.Context, updates []rollout.Update) (map[string]string, error)
}

// Past tells how commits are related. It fetches commits that are not here. Merge tells what merging a commit into
// another one would do. Between lists the commits from one to another, both of them included, the oldest first and
// along the first parents; an error means that this is not known. Outside are those of some commits that another one is
// not built on, by any of its parents.
type Past interface {
	Merge(ctx context.Context, commit, onto string) (rollout.Merge, error)
	Between(ctx context.Context, from, to string) ([]Snapshot, error)
	Outside(ctx context.Context, commit string, of []string) (outside []string, err error)
}

// Renderer builds one app as of one commit.
type Renderer = source.Renderer

// Observer shows the cluster from caches that watches keep current. Routes are the objects whose status, as written by
// their routers, is shown too. Serves asks the server whether a Service has a ready endpoint among the pods of a
// version, which the value of its Pin names. SameTemplate asks the server whether applying a workload would change the
// template that runs, and Foreign which other tools own an app's objects.
type Observer interface {
	Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed
	Serves(ctx context.Context, service rollout.Ref, podHash string) (bool, error)
	SameTemplate(ctx context.Context, workload rollout.Object) (bool, error)
	Foreign(ctx context.Context, app string, objects []rollout.Object, now time.Time) ([]rollout.Foreign, error)
}

// Applier writes to the cluster. Check asks the server whether it would accept objects: an error that wraps a
// *rollout.InvalidError is its final no, any other error says nothing about the objects. Apply makes no request for
// objects that are already as asked for; after an error the objects before the one that it names are applied, and
// applying again is safe. Prune returns the candidates that no longer exist. Evict deletes a pod by its uid.
type Applier interface {
	Check(ctx context.Context, app string, objects []rollout.Object) error
	Apply(ctx context.Context, app string, objects []rollout.Object) error
	Prune(ctx context.Context, app string, candidates []rollout.Ref) (gone []rollout.Ref, err error)
	Evict(ctx context.Context, namespace string, pod rollout.Pod) error
}

// Jobs are those that run around releases. CheckJob asks the server whether it would take one, as Applier's Check asks
// about other objects. EnsureJob says how one stands, and creates it first unless it has begun or is there. One that is
// there with another value of the annotation is another run's: Taken. DeleteJob removes it with its pods; one that is
// not there is removed.
type Jobs interface {
	CheckJob(ctx context.Context, object map[string]any) error
	EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error)
	DeleteJob(ctx context.Context, namespace, name string) error
}

// Analyzer measures. Measure begins what is due, in the background, and does nothing about a measurement that is under
// way; what is under way for an analysis that is not going any more ends. Measured returns, once, what has become of
// those of an app. Whoever implements it calls Touch when there is something to return.
type Analyzer interface {
	Measure(app rollout.App, going []rollout.AnalysisRun, due []strategies.Measure)
	Measured(app string) []strategies.Measured
}
