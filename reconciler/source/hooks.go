package source

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// Jobs reads and creates Jobs. If begun is true, EnsureJob only reads the Job.
type Jobs interface {
	EnsureJob(ctx context.Context, object map[string]any, annotation string, begun bool) (rollout.JobState, error)
}

// Applied returns a render's objects without the hook Jobs.
func Applied(r *rollout.Render) []rollout.Object { return hook.Without(r.Objects) }

// LookAtHooks reads the Jobs of running hooks. It omits unreadable Jobs.
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
			state = rollout.JobState{Waits: "the Job does not exist yet; gitrollout's log has the reason"}
		}
		in.Answers.Jobs = map[string]rollout.JobState{job.Key(): state}
	}
}
