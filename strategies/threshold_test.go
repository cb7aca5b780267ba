package strategies_test

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestEnough checks how many of a step's new pods must be available. By default, the workload has 10 replicas, and 2 pods may be missing.
func TestEnough(t *testing.T) {
	of := func(kind string, value int) *rollout.ProgressThreshold {
		return &rollout.ProgressThreshold{Type: kind, Value: value}
	}
	routed := func(s *rollout.Spec) {
		s.Scaling, s.Canary.Traffic = rollout.Surge, &rollout.Traffic{MaxWeight: 1000, Routers: []rollout.Router{httpRoute("web")}}
		s.Canary.Steps[0] = weight(500)
	}
	strict := func(s *rollout.Spec) { s.MaxUnavailable = rollout.Amount{} }
	for name, tc := range map[string]struct {
		threshold *rollout.ProgressThreshold
		weight    int
		change    func(*rollout.Spec)
		pods      int // the number of the step's new pods
		want      int
	}{
		"all by default":                         {nil, 50, nil, 5, 5},
		"a percentage":                           {of("Percent", 90), 50, nil, 5, 5},
		"rounded up, so not fewer":               {of("Percent", 61), 20, nil, 10, 8},
		"exactly":                                {of("Percent", 80), 50, nil, 5, 4},
		"a number":                               {of("Pods", 4), 50, nil, 5, 4},
		"the number as in Argo's documentation":  {of("Pod", 4), 50, nil, 5, 4},
		"a larger number than all pods":          {of("Pods", 9), 50, nil, 5, 5},
		"more than all percent":                  {of("Percent", 300), 50, nil, 5, 5},
		"no step is done without a pod":          {of("Percent", 0), 0, nil, 5, 1},
		"except a step without pods":             {of("Percent", 50), 0, nil, 0, 0},
		"a weight needs its share of 8 pods":     {of("Percent", 1), 50, nil, 5, 4},
		"a weight of 1,000":                      {of("Percent", 1), 500, routed, 5, 4},
		"no pod may be missing":                  {of("Percent", 1), 50, strict, 5, 5},
		"pods without requests":                  {of("Percent", 50), 0, strict, 6, 3},
		"all users need all but maxUnavailable":  {of("Percent", 1), 100, nil, 10, 8},
		"all pods, before the users' Service is": {of("Percent", 1), 20, nil, 10, 8},
		"a blue-green release":                   {nil, 0, func(s *rollout.Spec) { s.Canary, s.BlueGreen = nil, &rollout.BlueGreen{} }, 10, 10},
	} {
		h := twoVersions(func(s *rollout.Spec) {
			s.Canary.ReplicaProgressThreshold, s.Canary.Steps = tc.threshold, []rollout.Step{weight(tc.weight), aPause}
			if tc.change != nil {
				tc.change(s)
			}
		})
		spec, _ := h.at(h.headID()).Spec(web)
		m := workloads.Staged{Compiled: plan.Compile(spec), N: 10}
		if got := strategies.Enough(m, tc.pods); got != tc.want {
			t.Errorf("%s: %d of %d pods must serve, want %d", name, got, tc.pods, tc.want)
		}
	}
}

// TestThreshold checks that a step is completed once enough new pods are available and the surplus old pods are removed.
func TestThreshold(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) {
		s.Canary.Steps[0] = weight(50)
		s.Canary.ReplicaProgressThreshold = &rollout.ProgressThreshold{Type: "Percent", Value: 80}
	})
	for ready, want := range map[int]string{
		3: "pods of the new version: 3 of 5 serve, 4 must",
		4: "promotion of " + string(h.at(commitID(1)).Release()) + " at step 2/3",
		5: "promotion of " + string(h.at(commitID(1)).Release()) + " at step 2/3",
	} {
		in := inFlight(h, 0, set(h, commitID(0), 5, 5), set(h, commitID(1), 5, ready))
		for range 2 {
			transition(&in, h)
		}
		if got := strategies.Decide(in).Waiting; got != want {
			t.Errorf("with %d ready pods it waits for %q, want %q", ready, got, want)
		}
	}
	in := inFlight(h, 0, set(h, commitID(0), 6, 6), set(h, commitID(1), 5, 4))
	if got, want := strategies.Decide(in).Waiting, "pods of the old version: 1 of 6 must still be removed"; got != want {
		t.Errorf("with a surplus old pod it waits for %q, want %q", got, want)
	}
}
