package strategies

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// TestForecast lives random releases in the model of Kubernetes, where pods are
// ready at once and somebody promotes whenever the release waits for that, and
// compares each with its forecast: the release is never earlier, and mostly later
// by rounding only. Where pods are replaced in place within narrow limits, some of
// a step's pods have to serve before the others start, which no forecast counts.
func TestForecast(t *testing.T) {
	stages, promotions, loose := 0, 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 3))
		spec := randomSpec(rng, "web")
		spec.Replicas = new(1 + rng.IntN(10))
		k := kube.New(rng, noon)
		k.Fate = func(string) kube.Lifetime { return kube.Lifetime{} }
		s := &script{loop: newLoop(newHistory(source{workloads: []staged{{spec: spec, version: "v1"}}}), k),
			life: map[string]kube.Lifetime{}}
		finish(t, s, seed)
		if s.calendar = randomCalendar(rng); s.calendar.Freeze != nil {
			s.calendar = rollout.Calendar{}
		}
		s.push([]string{"v2"})
		f := Predict(Planned{Spec: spec, Replicas: *spec.Replicas, Calendar: s.calendar, Now: s.kube.Now})
		if slices.ContainsFunc(f.Stages, func(s ForecastStage) bool { return f.Routed && s.Weight > 0 && s.Canary == 0 }) {
			continue // requests for no pods: it waits until somebody promotes it fully
		}
		gates := finish(t, s, seed)
		if t.Failed() {
			return
		}
		stages, promotions = stages+len(f.Stages)-1, promotions+gates
		late := s.kube.Now.Sub(f.Ends)
		if late > 0 && goesBack(f) {
			continue // pods of the old version have to start and serve, which no forecast counts either
		}
		if late > 3*time.Second {
			loose++
		}
		if late < 0 || late > time.Duration(3+len(f.Stages))*time.Second+minReady(spec) {
			t.Errorf("seed %d: forecast to end at %s, and it ended at %s, %s later\n%+v", seed, f.Ends, s.kube.Now, late, f)
		}
		if gates != f.Gates {
			t.Errorf("seed %d: forecast %d promotions, and it took %d", seed, f.Gates, gates)
		}
	}
	if loose > 10 {
		t.Errorf("%d of 600 forecasts are more than 3s off", loose)
	}
	if stages < 800 || promotions < 80 {
		t.Errorf("%d stages and %d promotions in all: the releases are too simple to show anything", stages, promotions)
	}
}

func goesBack(f Forecast) bool {
	for i, s := range f.Stages {
		if i > 0 && s.Stable > f.Stages[i-1].Stable {
			return true
		}
	}
	return false
}

// finish goes on until what the head asks for serves, and returns how often it
// had to be promoted.
func finish(t *testing.T, s *script, seed uint64) (gates int) {
	t.Helper()
	head := s.git.at(s.git.headID()).Release()
	for range 500 {
		if !s.rest() {
			t.Fatalf("seed %d: the world does not come to rest", seed)
		}
		if s.state.Phase == rollout.Healthy && s.state.Former == nil && s.state.Stable != nil && s.state.Stable.Hash == head {
			return gates
		}
		if len(s.state.Progress) == 1 && s.state.Phase == rollout.Paused {
			pr := s.state.Progress[0]
			p := compile(s.git.head().workloads[0].spec)
			st, _ := p.at(pr.Step)
			if _, gated := st.wait.(promotionWait); gated && !s.git.head().promotion.Opens(head, pr.Workload, p.names(), pr.Step) {
				gates++
				s.decide(rollout.Promote, strconv.Itoa(pr.Step+1))
				continue
			}
		}
		due := s.nextDue()
		if !due.After(s.kube.Now) {
			t.Fatalf("seed %d: nothing goes on: %s", seed, s.status())
		}
		s.kube.Now = due
	}
	t.Fatalf("seed %d: it does not end: %s", seed, s.status())
	return 0
}
