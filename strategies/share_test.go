package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// TestTheShareIsWhatTheStepAsksFor scales a workload during a step, in Git and as an autoscaler, also from and to zero. It also edits the
// live update strategy, and the steps in Git. Within three seconds, the pods must match tableOf. Replay a failure with -seed N.
func TestTheShareIsWhatTheStepAsksFor(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 20
	}
	if *seedsFlag > 0 {
		seeds = *seedsFlag
	}
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		if *seedFlag != 0 && seed != *seedFlag {
			continue
		}
		s := shareSeed(seed, *seedFlag != 0)
		if s.failure != "" {
			t.Errorf("-run '%s$' -seed %d: %s\n%s", t.Name(), seed, s.failure, strings.Join(s.trace, "\n"))
		}
	}
}

// shareSpec returns a canary that pauses at a random weight.
func shareSpec(rng *rand.Rand) rollout.Spec {
	spec := randomSpec(rng, web.Name)
	spec.BlueGreen, spec.MinReadySeconds, spec.ProgressDeadlineAbort = nil, 0, false
	spec.Replicas = nil
	if rng.IntN(2) == 0 {
		spec.Replicas = new(1 + rng.IntN(20))
	}
	if spec.Canary == nil {
		spec.Canary = &rollout.Canary{}
	}
	spec.Canary.Steps = []rollout.Step{weight(rng.IntN(101)), aPause}
	if t := spec.Canary.Traffic; t != nil {
		t.Settle = 0
	}
	return spec
}

func shareSeed(seed uint64, verbose bool) *sim {
	rng := rand.New(rand.NewPCG(seed, 3))
	s := newSim(seed, chaos{scales: true}, historyOf(shareSpec(rng)).head(), verbose)
	s.rng = rng
	// Pods are ready immediately, so each delay comes from gitrollout.
	s.kube.Fate = func(string) kube.Lifetime { return kube.Lifetime{} }
	s.rest()
	s.resize()
	s.comeToRest()
	s.git.push(version("v2"))
	s.comeToRest()
	for range 2 + rng.IntN(6) {
		if s.failure != "" {
			break
		}
		s.meddle()
		s.comeToRest()
		s.checkShare()
	}
	return s
}

// shareSize returns a random number of replicas. Above 100, one percent is more than one pod.
func shareSize(rng *rand.Rand) int {
	return []int{1 + rng.IntN(4), 1 + rng.IntN(12), 1 + rng.IntN(40), 1 + rng.IntN(40), 1 + rng.IntN(400)}[rng.IntN(5)]
}

// resize changes the number of replicas, in Git or by an autoscaler.
func (s *sim) resize() {
	n := shareSize(s.rng)
	s.note("RESIZE to %d", n)
	if s.git.head().workloads[0].spec.Replicas != nil {
		s.git.push(func(x *source) { x.workloads[0].spec.Replicas = new(n) })
		return
	}
	s.scaleTo(s.kube.Deployments[web], n)
}

func (s *sim) meddle() {
	d := s.kube.Deployments[web]
	switch n := s.rng.IntN(10); {
	case n == 0:
		s.note("TO NOTHING AND BACK")
		was := d.Replicas
		s.scaleTo(d, 0)
		s.comeToRest()
		s.scaleTo(d, was)
	case n == 1:
		s.note("OTHER STEPS")
		steps := []rollout.Step{weight(s.rng.IntN(101)), aPause}
		s.git.push(func(x *source) { x.workloads[0].editCanary(func(c *rollout.Canary) { c.Steps = steps }) })
	case n <= 3:
		s.note("STRATEGY BY HAND")
		s.watch(web).Excused += d.Replicas // excuses missing pods after the manual change
		for _, o := range s.desired(s.state) {
			if o.Ref() == web.Ref() {
				o = o.Copy()
				o.Set(int64(d.Replicas), "spec", "replicas")
				o.Set(map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}, "spec", "strategy", "rollingUpdate")
				if s.rng.IntN(2) == 0 { // without minReadySeconds, ready pods are available at once
					o.Set(int64(0), "spec", "minReadySeconds")
				}
				if err := s.kube.Apply(o); err != nil {
					s.fail("by hand: %v", err)
				}
			}
		}
		for range s.rng.IntN(60) {
			s.kube.Micro()
		}
	default:
		s.resize()
		for range s.rng.IntN(20) { // the workload is scaled again before the pods match tableOf
			s.kube.Micro()
		}
	}
}

// comeToRest runs all due events four times, one second apart.
func (s *sim) comeToRest() {
	for range 4 {
		if !s.rest() {
			s.fail("the world does not come to rest")
			return
		}
		s.kube.Now = s.kube.Now.Add(time.Second)
	}
	s.quiet()
}

// checkShare checks that the numbers of pods match tableOf.
func (s *sim) checkShare() {
	d := s.kube.Deployments[web]
	pr, moves := s.state.ProgressOf(web)
	spec, _ := s.specOf(web)
	if moves && pr.Step > 1 || s.state.Release == nil {
		return // after the edit of the steps, the release is at another step
	}
	if !moves || !workloads.IsHeld(s.state) {
		s.fail("the release does not wait at a step: %s %s", s.state.Phase, s.state.Reason)
		return
	}
	want := tableOf(spec, *spec.Canary.Steps[0].SetWeight, d.Replicas)
	got := plan.Counts{}
	for _, r := range s.kube.Observe().Workloads[web].Revisions {
		switch r.Hash {
		case s.state.StableHash(web):
			got.Stable += r.Ready()
		case s.releaseHash(web):
			got.Canary += r.Ready()
		default:
			if r.Pods > 0 {
				s.fail("a third version has %d pods", r.Pods)
			}
		}
	}
	if got != want {
		s.fail("%d replicas at step %d, %s: %+v pods, the table has %+v\n%s", d.Replicas, pr.Step, text(spec), got, want, dump(s.state.Progress))
	}
	for _, o := range s.desired(s.state) {
		if o.Ref() == web.Ref() && o.Map("spec")["paused"] != false {
			s.fail("at rest it is paused")
		}
	}
}

func text(spec rollout.Spec) string {
	return fmt.Sprintf("%s, %s/%s, weight %d, floor %d, routed %t, dynamic %t", spec.Scaling, spec.MaxSurge, spec.MaxUnavailable,
		*spec.Canary.Steps[0].SetWeight, spec.Canary.MinPodsPerReplicaSet, spec.Canary.Traffic != nil,
		spec.Canary.DynamicStableScale)
}

// tableOf returns the documented counts for a weight. With a surge, the weight's share of n, rounded up, is added as new pods. All n stable
// pods stay; with dynamicStableScale, only the rest of n stays. With in-place scaling, the counts are as in Argo Rollouts.
func tableOf(spec rollout.Spec, weight, n int) plan.Counts {
	up := func(share int) int { return (n*share + 99) / 100 }
	c := plan.Counts{Canary: up(weight), Stable: n}
	switch {
	case spec.Scaling == rollout.InPlace:
		c = plan.Approximate(n, weight, spec.MaxSurge.RoundUp(n) > 0)
	case spec.Canary.DynamicStableScale:
		c.Stable = max(up(100-weight), n-c.Canary)
	}
	inPlace := spec.Scaling == rollout.InPlace
	floor := min(spec.Canary.MinPodsPerReplicaSet, n)
	if c.Canary > 0 {
		c.Canary = max(c.Canary, floor)
	}
	if c.Stable > 0 {
		c.Stable = max(c.Stable, floor)
	}
	for gone := n - c.Stable; inPlace || spec.Canary.DynamicStableScale; gone-- {
		percent := 0
		for percent*n/100 < gone {
			percent++
		}
		if gone <= 0 || percent*n/100 == gone {
			break
		}
		c.Stable++ // the removed pods must be a whole percentage of n
		if inPlace {
			c.Canary--
		}
	}
	return c
}
