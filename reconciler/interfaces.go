package reconciler

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Snapshot is a commit, readable without a worktree.
type Snapshot = source.Snapshot

// Repository is a mirror of the Git server. A failed Fetch changes nothing. Bring fetches commits by id in one request,
// and returns the ids that the server lacks. Push returns the new commits' ids by branch, and is atomic if the server
// supports it. If a branch has moved, the error wraps rollout.ErrConflict. After any other error of Push, the outcome
// is unknown until the next Fetch, and the push may be repeated. A Push may run during a Fetch.
type Repository interface {
	Fetch(ctx context.Context) (rollout.Heads, error)
	Bring(ctx context.Context, commits []string) (gone []string, err error)
	Held(commit string) (tree Snapshot, held bool)
	Push(ctx context.Context, updates []rollout.Update) (map[string]string, error)
}

// Past compares and fetches commits. Between returns the first-parent commits from `from` to `to`, both included,
// oldest first. If it fails, it returns the newest readable commits, if any. Outside returns the listed commits that
// are not ancestors of the given commit.
type Past interface {
	Merge(ctx context.Context, commit, onto string) (rollout.Merge, error)
	Between(ctx context.Context, from, to string) ([]Snapshot, error)
	Outside(ctx context.Context, commit string, of []string) (outside []string, err error)
}

// Branches reads other clusters' branches. Its method Branches returns the heads of existing branches, and Held returns
// the commit of such a head. "known" maps each branch to its head in the last call, or "". "repo" is the URL of another
// repository on the same server, or "".
type Branches interface {
	Branches(ctx context.Context, repo string, known map[string]string) (heads map[string]string, err error)
	Held(commit string) (tree Snapshot, held bool)
}

type Renderer = source.Renderer

// Observer reads the cluster. Observe uses watch caches; "routes" are the objects whose status a router, such as a
// Gateway API controller, writes. Serves asks the API server whether a pod of one version is a ready endpoint of a
// Service. SameTemplate asks the API server whether an apply would keep the running pod template.
type Observer interface {
	Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed
	Serves(ctx context.Context, service rollout.Ref, podHash string) (bool, error)
	SameTemplate(ctx context.Context, workload rollout.Object) (bool, error)
	OtherOwners(ctx context.Context, app string, objects []rollout.Object, now time.Time) ([]rollout.Foreign, error)
}

// Applier writes to the cluster. Check is a dry run on the server. A Check error that wraps a *rollout.InvalidError is
// final; after any other error, Check must be repeated. Apply sends no request for an unchanged object. An Apply error
// names the failed object; the objects before it are applied, and Apply may be repeated. Prune returns the candidates
// that no longer exist. Evict deletes a pod by its uid.
type Applier interface {
	Check(ctx context.Context, app string, objects []rollout.Object) error
	Apply(ctx context.Context, app string, objects []rollout.Object) error
	Prune(ctx context.Context, app string, candidates []rollout.Ref) (gone []rollout.Ref, err error)
	Evict(ctx context.Context, namespace string, pod rollout.Pod) error
}

// Annotations writes metadata. Unannotate removes an annotation if it has the given value. SetRole replaces the
// metadata of a pod's former role. If the API server refuses, the error is rollout.ErrUnlabelled.
type Annotations interface {
	SetRole(ctx context.Context, namespace string, pod rollout.Pod, role string) error
	Unannotate(ctx context.Context, workload rollout.Ref, key, value string) error
}

// Jobs manages hook Jobs. CheckJob asks the API server whether it would accept a Job. If a Job is missing, EnsureJob
// creates the Job or, if "begun" is true, sets Gone. If the Job's annotation has another value, another run created the
// Job, and Taken is set. DeleteJob deletes a Job and its pods, if any.
type Jobs interface {
	CheckJob(ctx context.Context, object map[string]any) error
	EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error)
	DeleteJob(ctx context.Context, namespace, name string) error
}

// Analyzer measures in the background. Measure starts due measurements and stops measurements of ended analyses.
// Measured returns each result once. A new result must cause a call of Reconciler.Touch.
type Analyzer interface {
	Measure(app rollout.App, going []rollout.AnalysisRun, due []strategies.Measure)
	Measured(app string) []strategies.Measured
}
