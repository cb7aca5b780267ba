package strategies_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run only this seed of the property tests, with its trace")
	seedsFlag = flag.Int("seeds", 0, "how many seeds each property test runs")
)

// worlds lists kinds of simulations. A failure prints its seed; replay it with: go test ./strategies -run 'TestInvariants/NAME$' -seed N
var worlds = map[string]chaos{
	"Calm":        {},
	"BadVersions": {bad: true},
	"Kills":       {kills: true},
	"Scales":      {scales: true},
	"Crashes":     {crashes: true, bad: true},
	"Lag":         {lag: true, bad: true},
	"Everything":  {kills: true, scales: true, crashes: true, bad: true, lag: true},
	"Settings":    {crashes: true, settings: true},
	"Experiments": {crashes: true, bad: true, experiments: true},
}

// regressions are seeds that once violated an invariant; they run in addition to the seeds of each run. A change of the simulation makes
// the seeds useless, so a test case or script also covers each defect.
var regressions = map[string][]uint64{
	"Calm":        {258, 331, 430, 491},
	"BadVersions": {284, 503, 858},
	"Scales":      {324, 525, 553},
	"Crashes":     {288, 563, 1031},
	"Everything":  {334, 762},
	"Experiments": {1006},
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // each run is short and leaves little garbage
	os.Exit(m.Run())
}

// TestInvariants runs random releases in simulated clusters. During a run, checkPods, checkWrite, checkDecision and checkCommit check the
// invariants. At the end, settle checks the result.
func TestInvariants(t *testing.T) {
	for name, c := range worlds {
		t.Run(name, func(t *testing.T) {
			if *seedFlag != 0 {
				s := runSeed(*seedFlag, c, true)
				t.Log(strings.Join(s.trace, "\n"))
				if s.failure != "" {
					t.Error(s.failure)
				}
				return
			}
			seeds := 150
			if testing.Short() {
				seeds = 8
			}
			if *seedsFlag > 0 {
				seeds = *seedsFlag
			}
			all := append([]uint64{}, regressions[name]...)
			for i := range seeds {
				all = append(all, uint64(i)+1)
			}
			runSeeds(t, name, c, all)
		})
	}
}

func runSeeds(t *testing.T, name string, c chaos, seeds []uint64) {
	t.Helper()
	work := make(chan uint64)
	var wg sync.WaitGroup
	var mu sync.Mutex
	failures := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range work {
				if runSeed(seed, c, false).failure == "" {
					continue
				}
				s := runSeed(seed, c, true)
				mu.Lock()
				if failures++; failures <= 3 {
					t.Errorf("-run 'TestInvariants/%s$' -seed %d: %s\n%s", name, seed, s.failure, strings.Join(s.trace[max(0, len(s.trace)-40):], "\n"))
				}
				mu.Unlock()
			}
		})
	}
	for _, seed := range seeds {
		work <- seed
	}
	close(work)
	wg.Wait()
	if failures > 3 {
		t.Errorf("%d of %d seeds fail", failures, len(seeds))
	}
}

// runSeed runs one simulation: a first deployment, then releases and faults. Then it repairs the cluster, and the app must become healthy.
func runSeed(seed uint64, c chaos, verbose bool) *sim {
	rng := rand.New(rand.NewPCG(seed, 2))
	first := randomSource(rng)
	if c.experiments {
		for i := range first.workloads {
			if canary := first.workloads[i].spec.Canary; canary != nil {
				canary.Steps = randomExperiments(rng, canary)
			}
		}
	}
	for i := range first.workloads { // Rollout documents may assign a role to these Services, and remove the role later
		name := first.workloads[i].spec.Workload.Name
		first.workloads[i].services = []string{name, name + "-canary", name + "-preview"}
	}
	s := newSim(seed, c, first, verbose)
	s.start()
	for range 60 + s.rng.IntN(240) {
		if s.failure != "" {
			return s
		}
		s.act()
	}
	s.settle()
	return s
}

// start deploys the first version, or adopts it.
func (s *sim) start() {
	adopt := s.rng.IntN(6) == 0
	if adopt {
		for _, w := range s.git.head().workloads {
			if err := s.kube.Apply(deploymentObject(w)); err != nil {
				s.fail("apply by hand: %v", err)
			}
		}
	}
	s.rest()
	for _, w := range s.git.head().workloads {
		if d := s.kube.Deployments[w.spec.Workload]; d != nil && w.spec.Replicas == nil {
			s.scaleTo(d, sizes[s.rng.IntN(len(sizes))])
		}
	}
	for range 20 {
		s.advance()
		s.rest()
		if s.state.Phase == rollout.Healthy {
			s.quiet()
			s.calendar = randomCalendar(s.rng)
			return
		}
	}
	s.fail("the first deployment ends as %s: %s", s.state.Phase, s.state.Reason)
}

var sizes = []int{0, 1, 1, 2, 3, 3, 5, 5, 7, 10, 10, 12}

func (s *sim) scaleTo(d *kube.Deployment, n int) {
	s.note("SCALE %s to %d", d.Workload, n)
	if d.Replicas != n {
		d.Replicas = n
		d.Generation++
		s.kube.OnChange("replicas")
	}
}

func (s *sim) advance() {
	if due := s.nextDue(); due.After(s.kube.Now) && s.rng.IntN(4) > 0 {
		s.kube.Now = due
		return
	}
	s.kube.Now = s.kube.Now.Add(time.Duration(1+s.rng.IntN(20)) * time.Second)
}

func (s *sim) act() {
	switch n := s.rng.IntN(100); {
	case n < 55:
		for range 1 + s.rng.IntN(12) {
			if !s.kube.Micro() {
				break
			}
		}
	case n < 78:
		s.note("PASS")
		s.pass()
	case n < 88:
		s.advance()
	case n < 89:
		s.kube.Now = s.kube.Now.Add(time.Hour)
	case n < 93:
		if s.rest() {
			s.quiet()
		}
	case n < 98:
		s.flights = 0
		s.people()
	case s.chaos.kills && n == 98:
		s.flights = 0
		s.kill()
	case s.chaos.scales && n == 99:
		s.flights = 0
		s.hpa()
	case s.chaos.crashes && n == 99:
		s.note("CRASH")
		s.pending, s.health = nil, strategies.Health{}
		s.crashes++
	}
}

func (s *sim) hpa() {
	for _, w := range sortedWorkloads(s.kube.Deployments) {
		if spec, ok := s.specOf(w); ok && spec.Replicas == nil && s.rng.IntN(2) == 0 {
			s.scaleTo(s.kube.Deployments[w], sizes[s.rng.IntN(len(sizes))])
		}
	}
}

// people makes a random change by users: a push, a promotion, a revert or a mistake.
func (s *sim) people() {
	before := len(s.git.commits)
	what := ""
	switch n := s.rng.IntN(100); {
	case n < 30:
		what = "push a version"
		s.git.push(func(x *source) {
			for i := range x.workloads {
				if i == 0 || s.rng.IntN(2) == 0 {
					x.workloads[i].version = s.nextVersion()
				}
			}
		})
	case n < 36:
		what = "push configuration"
		s.git.push(func(x *source) { x.config++ })
	case n < 46:
		old := s.git.commits[s.rng.IntN(before)]
		what = "revert"
		s.git.push(func(x *source) { x.workloads, x.config = old.clone().workloads, old.config })
	case n < 52:
		what = "change steps"
		s.git.push(func(x *source) {
			w := &x.workloads[s.rng.IntN(len(x.workloads))]
			if w.spec.Canary == nil {
				return
			}
			w.editCanary(func(c *rollout.Canary) {
				if c.Steps = randomSteps(s.rng, w.spec.Scaling); s.chaos.experiments {
					c.Steps = randomExperiments(s.rng, c)
				}
			})
		})
	case n < 54 && s.chaos.settings:
		what = "change settings"
		s.git.push(func(x *source) { otherSettings(s.rng, &x.workloads[s.rng.IntN(len(x.workloads))].spec) })
	case n < 55:
		what = "toggle a Rollout document"
		s.git.push(func(x *source) { w := &x.workloads[s.rng.IntN(len(x.workloads))]; w.plain = !w.plain })
	case n < 57 && len(s.git.head().workloads) > 1:
		what = "toggle a workload"
		s.git.push(func(x *source) { x.workloads[1].gone = !x.workloads[1].gone })
	case n < 61:
		what = "toggle an error"
		s.git.push(func(x *source) { x.broken = !x.broken })
	case n < 64:
		what = "toggle paused"
		s.git.push(func(x *source) { w := &x.workloads[0]; w.spec.Paused = !w.spec.Paused })
	case n < 67 && s.chaos.scales:
		what = "change replicas"
		s.git.push(func(x *source) {
			w := &x.workloads[0]
			if w.spec.Replicas != nil {
				w.spec.Replicas = new(sizes[s.rng.IntN(len(sizes))])
			}
		})
	case n < 92:
		p := s.promotion()
		what = fmt.Sprintf("%s %s through %s", p.Decision, p.Release, p.Through)
		s.git.push(func(x *source) { x.promotion = p })
	default:
		what = "remove the promotion file"
		s.git.push(func(x *source) { x.promotion = nil })
	}
	s.note("PEOPLE %s %s", s.git.headID(), what)
}

func (s *sim) nextVersion() string {
	s.serial++
	v := fmt.Sprintf("v%d", s.serial+1)
	if s.chaos.bad && s.rng.IntN(3) == 0 {
		s.bad[v] = true
	}
	return v
}

// promotion returns a random promotion file, mostly for the release in flight.
func (s *sim) promotion() *rollout.Promotion {
	s.serial++
	p := &rollout.Promotion{Release: "h1-stale", Digest: fmt.Sprint(s.serial), Author: "Ann", Through: rollout.Full}
	switch n := s.rng.IntN(10); {
	case n < 6 && s.state.Release != nil:
		p.Release = s.state.Release.Hash
	case n < 9 && !s.git.head().broken:
		p.Release = s.git.at(s.git.headID()).Release()
	}
	verbs := []rollout.Verb{rollout.Promote, rollout.Promote, rollout.Promote, rollout.Promote, rollout.Hold, rollout.Abort, rollout.Retry}
	p.Decision = verbs[s.rng.IntN(len(verbs))]
	if p.Decision == rollout.Promote && s.rng.IntN(3) > 0 {
		p.Through = []string{"0", "1", "2", "3", "4", "promotion", "first", "-1", "99"}[s.rng.IntN(9)]
	}
	if key := strategies.Key(s.input(s.state, s.settled)); s.chaos.settings && key != nil && s.rng.IntN(2) == 0 {
		key.Digest, key.Author = p.Digest, p.Author
		return key
	}
	return p
}

// settle repairs the cluster and checks the result: the head's version serves all users, no Service selects a single version, and the state
// does not change any more.
func (s *sim) settle() {
	if s.failure != "" {
		return
	}
	s.note("SETTLE")
	s.loop.fails = func(string) bool { return false }
	s.bad, s.calendar.Freeze = map[string]bool{}, nil
	for _, d := range s.kube.Deployments {
		for _, rs := range d.Sets {
			for _, p := range rs.Pods {
				p.Never = false
			}
		}
	}
	s.git.push(func(x *source) {
		x.broken, x.promotion = false, nil
		for i := range x.workloads {
			x.workloads[i].plain, x.workloads[i].spec.Paused = false, false
		}
	})
	for i := range 100 {
		s.flights = 0
		if !s.rest() {
			s.fail("the world does not come to rest in phase %s", s.state.Phase)
		}
		if s.failure != "" {
			return
		}
		s.quiet()
		head := s.git.at(s.git.headID())
		if s.state.Phase == rollout.Healthy && s.state.Held == nil && s.state.Release == nil && s.state.Draining == nil &&
			(s.state.Stable == nil || s.state.Stable.Hash == head.Release()) && !s.nextDue().After(s.kube.Now) {
			s.checkEnd(head)
			return
		}
		if due := s.nextDue(); due.After(s.kube.Now) {
			s.kube.Now = due
			continue
		}
		verb := rollout.Promote
		if s.state.Phase == rollout.Degraded {
			verb = rollout.Retry
		}
		s.git.push(func(x *source) {
			x.promotion = &rollout.Promotion{Release: head.Release(), Decision: verb, Through: rollout.Full, Digest: fmt.Sprint("settle", i)}
		})
		s.note("PEOPLE %s", verb)
	}
	s.fail("the world does not become healthy: %s, %s, %s, waits for %s", s.state.Phase, s.state.Reason, dump(s.state),
		strategies.Decide(s.input(s.state, s.settled)).Waiting)
}

func (s *sim) checkEnd(head *rollout.Render) {
	observed := s.kube.Observe()
	for w, hash := range head.Templates {
		live := observed.Workloads[w]
		if live.Hash != hash || !live.Complete {
			s.fail("%s is at %s, complete %t, Git asks for %s", w, live.Hash, live.Complete, hash)
		}
	}
	for ref, pin := range s.kube.Pins {
		if pin != "" {
			s.fail("%s still selects %s", ref, pin)
		}
	}
	s.checkExperiments(s.state, s.desired(s.state))
	before, objects := s.state, dump(s.desired(s.state))
	for range 3 {
		s.kube.Now = s.kube.Now.Add(24 * time.Hour)
		if d := s.pass(); d.Subject != "" || !s.state.Equal(&before) || dump(s.desired(s.state)) != objects || s.kube.Micro() {
			s.fail("something moves at rest: %q", d.Subject)
		}
	}
}
