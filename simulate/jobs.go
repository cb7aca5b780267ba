package simulate

import (
	"context"
	"errors"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type job struct {
	annotation string // of the hook's run
	state      rollout.JobState
	made       time.Time
}

// CheckJob implements reconciler.Jobs. It accepts any Job.
func (v *View) CheckJob(context.Context, map[string]any) error { return nil }

// EnsureJob implements reconciler.Jobs. Until the Job ends, each call asks Cluster.Ends.
func (v *View) EnsureJob(
	_ context.Context, object map[string]any, annotation string, begun bool,
) (rollout.JobState, error) {
	o := rollout.Object(object)
	key := o.Namespace() + "/" + o.Name()
	if v.cluster.jobs[key] == nil && !begun {
		begin := func() { v.cluster.makeJob(key, o.Annotation(annotation)) }
		if err := v.act(Effect{Verb: "make", Object: name(o)}, begin); err != nil {
			return rollout.JobState{}, err
		}
	}
	j := v.cluster.jobs[key]
	switch {
	case j == nil:
		return rollout.JobState{Gone: true}, nil
	case j.annotation != o.Annotation(annotation):
		return rollout.JobState{Taken: true}, nil
	}
	if !j.state.Complete && !j.state.Failed {
		j.state = v.cluster.Ends(o.Name())
	}
	j.state.Started = j.made
	return j.state, nil
}

func (c *Cluster) makeJob(key, annotation string) {
	if c.jobs[key] == nil {
		c.jobs[key] = &job{annotation: annotation, made: c.Kube.Now}
		c.made[annotation]++
		c.changed("Job " + key + " made")
	}
}

// DeleteJob implements reconciler.Jobs.
func (v *View) DeleteJob(_ context.Context, namespace, name string) error {
	return v.act(Effect{Verb: "delete", Object: "Job/" + name}, func() { delete(v.cluster.jobs, namespace+"/"+name) })
}

// ends maps a hook's name to the state of its Jobs. Jobs of unlisted hooks succeed.
type ends map[string]rollout.JobState

func (e ends) of(job string) rollout.JobState {
	for name, state := range e {
		if strings.HasPrefix(job, name+"-") {
			return state
		}
	}
	return rollout.JobState{Complete: true}
}

func (e ends) set(args, hooks []string) error {
	state, known := map[string]rollout.JobState{
		"completes": {Complete: true}, "runs": {}, "fails": {Failed: true, Message: "BackoffLimitExceeded"},
	}[strings.Join(args[min(1, len(args)):], " ")]
	if !known {
		return errors.New("job: write job NAME completes, job NAME fails, or job NAME runs")
	}
	e[args[0]] = state
	return oneOf("Job of a hook", args[0], hooks)
}
