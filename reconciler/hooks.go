package reconciler

import (
	"context"
	"maps"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

func (r *Reconciler) askJobs(
	ctx context.Context, a *appView, known map[string]rollout.JobState, jobs []strategies.HookJob,
) map[string]rollout.JobState {
	all := map[string]rollout.JobState{}
	maps.Copy(all, known)
	for _, job := range jobs {
		state, err := r.askJob(ctx, a, job)
		if err != nil {
			state.Stuck = err.Error()
		}
		if r.errorLog.isNew("hook of "+a.Name, state.Stuck) && state.Stuck != "" {
			r.Log.Warn("a Job does not start", "app", a.Name, "job", job.Key(), "why", state.Stuck, "message", state.Message)
		}
		if uid := state.UID; uid != "" && r.errorLog.before("Job "+job.Key(), uid, state.Complete || state.Failed) != uid {
			state.Anew = true
			r.Log.Warn("a Job was deleted while it ran, and is created again", "app", a.Name, "job", job.Key())
		}
		all[job.Key()] = state
	}
	return all
}

func (o *Options) askJob(ctx context.Context, a *appView, job strategies.HookJob) (rollout.JobState, error) {
	switch {
	case o.Jobs == nil:
		return rollout.JobState{Stuck: "this process cannot create Jobs"}, nil
	case job.Delete:
		return rollout.JobState{Gone: true}, o.Jobs.DeleteJob(ctx, job.Object.Namespace(), job.Object.Name())
	}
	makes := job.Make && a.removed == nil
	if makes && len(job.Needs) > 0 {
		if err := o.Applier.Apply(ctx, a.Name, job.Needs); err != nil {
			return rollout.JobState{}, err
		}
	}
	return o.Jobs.EnsureJob(ctx, job.Object, hook.AnnotationID, !makes)
}
