package source

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// Jobs says how a Job stands. Begun is for those who only look: it makes none then.
type Jobs interface {
	EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error)
}

// Applied are the objects of a commit that are applied: all but the Jobs that run around releases.
func Applied(r *rollout.Render) []rollout.Object { return hook.Without(r.Objects) }

// LookAtHooks sees how the Job of a hook stands that runs, for those who show an app. Who may not see Jobs is not told
// why one does not start.
func LookAtHooks(ctx context.Context, in *strategies.Input, cluster Jobs) {
	for _, run := range in.State.Hooks {
		if run.Phase != rollout.HookRunning {
			continue
		}
		job := strategies.HookJob{Object: hook.Known(in.App.Name, run)}
		state, err := cluster.EnsureJob(ctx, job.Object, hook.AnnotationID, true)
		switch {
		case err != nil:
			continue
		case state.Gone:
			state = rollout.JobState{Waits: "it is not there yet; the log of gitrollout says why"}
		}
		in.Answers.Jobs = map[string]rollout.JobState{job.Key(): state}
	}
}
