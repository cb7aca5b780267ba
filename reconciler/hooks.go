package reconciler

import (
	"context"
	"maps"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// askJobs reads the states of hook Jobs and creates due ones. Why a Job does not start is logged once.
func (s *pass) askJobs(ctx context.Context, o *Options, complain *errorLog, jobs []strategies.HookJob) {
	known := maps.Clone(s.input.Answers.Jobs)
	if known == nil {
		known = map[string]rollout.JobState{}
	}
	for _, job := range jobs {
		state, err := s.askJob(ctx, o, job)
		if err != nil {
			state.Stuck = err.Error()
		}
		if complain.isNew("hook of "+s.app.Name, state.Stuck) && state.Stuck != "" {
			o.Log.Warn("a Job does not start", "app", s.app.Name, "job", job.Key(), "why", state.Stuck, "message", state.Message)
		}
		if uid := state.UID; uid != "" && complain.before("Job "+job.Key(), uid, state.Complete || state.Failed) != uid {
			state.Anew = true
			o.Log.Warn("a Job was deleted while it ran, and is made anew", "app", s.app.Name, "job", job.Key())
		}
		known[job.Key()] = state
	}
	s.input.Answers.Jobs = known
}

// checkJobs checks a commit's Jobs with the API server before any runs, not once all users are on the release.
func (s *pass) checkJobs(ctx context.Context, cluster Jobs, at *rollout.Render) error {
	if cluster == nil {
		return nil
	}
	for _, job := range hook.Jobs(s.app.Name, at.Objects, at.Release()) {
		if err := cluster.CheckJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// askJob creates, reads or deletes a Job on record. The call is retried until the hook's deadline. No Job is created
// for an app that Git no longer lists.
func (s *pass) askJob(ctx context.Context, o *Options, job strategies.HookJob) (rollout.JobState, error) {
	switch {
	case o.Jobs == nil:
		return rollout.JobState{Stuck: "no Job can be made here"}, nil
	case job.Delete:
		return rollout.JobState{Gone: true}, o.Jobs.DeleteJob(ctx, job.Object.Namespace(), job.Object.Name())
	}
	makes := job.Make && s.app.removed == nil
	if makes && len(job.Needs) > 0 {
		if err := o.Applier.Apply(ctx, s.app.Name, job.Needs); err != nil {
			return rollout.JobState{}, err
		}
	}
	return o.Jobs.EnsureJob(ctx, job.Object, hook.AnnotationID, !makes)
}
