package strategies_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// TestForecast compares random releases in the model of Kubernetes with their forecasts. Pods become ready and gates are promoted
// immediately. No release may end before the forecast time. It may end a little later: times are rounded, and forecasts ignore that
// in-place updates may start pods in batches.
func TestForecast(t *testing.T) {
	stages, promotions, loose := 0, 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 3))
		spec := randomSpec(rng, "web")
		spec.Replicas = new(1 + rng.IntN(10))
		s := &script{loop: newLoop(historyOf(spec), kube.New(rng, noon))}
		finish(t, s, seed)
		if s.calendar = randomCalendar(rng); s.calendar.Freeze != nil {
			s.calendar = rollout.Calendar{}
		}
		s.push([]string{"v2"})
		f := strategies.Predict(strategies.Planned{Spec: spec, Replicas: *spec.Replicas, Calendar: s.calendar, Now: s.kube.Now})
		if slices.ContainsFunc(f.Stages, func(s strategies.ForecastStage) bool { return f.Routed && s.Weight > 0 && s.Canary == 0 }) {
			continue // such a release waits for a full promotion
		}
		gates := finish(t, s, seed)
		if t.Failed() {
			return
		}
		stages, promotions = stages+len(f.Stages)-1, promotions+gates
		late := s.kube.Now.Sub(f.Ends)
		if late > 0 && goesBack(f) {
			continue // forecasts ignore the time until old pods are ready
		}
		if late > 3*time.Second {
			loose++
		}
		if late < 0 || late > time.Duration(3+len(f.Stages))*time.Second+plan.MinReady(spec) {
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

func goesBack(f strategies.Forecast) bool {
	for i, s := range f.Stages {
		if i > 0 && s.Stable > f.Stages[i-1].Stable {
			return true
		}
	}
	return false
}

// finish runs the simulated cluster until the head's version serves all users, and promotes each gate. It returns the number of promotions.
func finish(t *testing.T, s *script, seed uint64) (gates int) {
	t.Helper()
	head := s.git.at(s.git.headID()).Release()
	for range 500 {
		if !s.rest() {
			t.Fatalf("seed %d: the world does not come to rest", seed)
		}
		if s.state.Phase == rollout.Healthy && s.state.Draining == nil && s.state.Stable != nil && s.state.Stable.Hash == head {
			return gates
		}
		if len(s.state.Progress) == 1 && s.state.Phase == rollout.Paused {
			pr := s.state.Progress[0]
			p := plan.Compile(s.git.head().workloads[0].spec)
			st, _ := p.At(pr.Step)
			if _, gated := st.Wait.(plan.PromotionWait); gated && !s.git.head().promotion.Opens(head, pr.Workload, p.Names(), pr.Step) {
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

// TestPredict checks the predicted times of a release, also with a calendar that opens late or never.
func TestPredict(t *testing.T) {
	spec := oneWeb(func(s *rollout.Spec) {
		s.MinReadySeconds, s.MaxSurge, s.MaxUnavailable = 10, rollout.Amount{Value: 2}, rollout.Amount{Value: 1}
	}).head().workloads[0].spec
	closed := rollout.Calendar{Freeze: &rollout.Freeze{Reason: "sale"}}
	until := noon.Add(time.Hour)
	later := rollout.Calendar{Freeze: &rollout.Freeze{Reason: "sale", Until: until}}
	const thaw = "the end of the freeze"
	for name, c := range map[string]struct {
		change       func(*strategies.Planned)
		stages       int
		gates        int
		least        time.Duration
		begins, ends time.Time
		shut         string // the field Shut of the first stage
	}{
		"AtOnce": {func(*strategies.Planned) {}, 4, 1, 100 * time.Second, noon, noon.Add(100 * time.Second), ""},
		"First":  {func(p *strategies.Planned) { p.First = true }, 1, 0, 30 * time.Second, noon, noon.Add(30 * time.Second), ""},
		"Later":  {func(p *strategies.Planned) { p.Calendar = later }, 4, 1, 100 * time.Second, until, until.Add(100 * time.Second), thaw},
		"Never":  {func(p *strategies.Planned) { p.Calendar = closed }, 4, 1, 100 * time.Second, time.Time{}, time.Time{}, thaw},
		"GoesOn": {func(p *strategies.Planned) { p.From = 2 }, 2, 0, 90 * time.Second, noon, noon.Add(90 * time.Second), ""},
		"AtNight": {func(p *strategies.Planned) { p.Fast, p.Calendar = true, closed }, 1, 0, 30 * time.Second, noon, noon.Add(30 * time.Second),
			""},
	} {
		t.Run(name, func(t *testing.T) {
			p := strategies.Planned{Spec: spec, Replicas: 10, Now: noon}
			c.change(&p)
			f := strategies.Predict(p)
			if len(f.Stages) != c.stages || f.Gates != c.gates || f.AtLeast != c.least || !f.Begins.Equal(c.begins) || !f.Ends.Equal(c.ends) {
				t.Errorf("%d stages, %d gates, %s, from %s to %s\n%+v", len(f.Stages), f.Gates, f.AtLeast, f.Begins, f.Ends, f)
			}
			if got := f.Stages[0].Shut; !strings.HasPrefix(got, c.shut) || (got == "") != (c.shut == "") {
				t.Errorf("it waits for %q, want %q", got, c.shut)
			}
			for _, s := range f.Stages[1:] {
				if s.Shut != "" {
					t.Errorf("it waits again for %q", s.Shut)
				}
			}
			if last := f.Stages[len(f.Stages)-1]; last.Wait != strategies.WaitPods || last.Canary != 10 || last.Weight != 100 {
				t.Errorf("it ends as %+v", last)
			}
		})
	}
	// The calendar closes again during the steps, so the rest waits for the next day.
	daily := calendarOf("[{kind: allow, schedule: '0 12 * * *', duration: 1m, timeZone: UTC}]")
	f := strategies.Predict(strategies.Planned{Spec: spec, Replicas: 10, Now: noon, Calendar: daily})
	last := f.Stages[len(f.Stages)-1]
	if last.Shut == "" || !last.Enters.Equal(noon.Add(24*time.Hour)) || !f.Begins.Equal(noon) || f.AtLeast != 100*time.Second {
		t.Errorf("it goes on at %s, of %+v", last.Enters, f)
	}
	if f.Stages[1].Shut+f.Stages[2].Shut != "" {
		t.Errorf("within a minute it waits: %+v", f)
	}
}
