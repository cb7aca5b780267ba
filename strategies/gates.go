package strategies

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// gate is a reason not to advance.
type gate struct {
	name    string
	verdict func(Input, moving) verdict
}

// gates are all reasons not to advance, asked in this order: the first that is
// not done decides. None of them is asked before a retreat.
var gates = gateList{
	{"hold", gateHold},
	{"healed", gateHealed},
	{"routers", gateRouters},
	{"inconclusive", gateInconclusive},
	{"wait", gateWait},
	{"window", gateWindow},
}

// fullGates are those that a promotion of everything does not open.
var fullGates = gates.except("routers", "inconclusive", "wait")

type gateList []gate

func (all gateList) verdict(in Input, m moving) verdict {
	by := ""
	for _, g := range all {
		v := g.verdict(in, m)
		if !v.done {
			return v
		}
		by = orElse(by, v.by)
	}
	return verdict{done: true, by: by}
}

func (all gateList) except(names ...string) gateList {
	return slices.DeleteFunc(slices.Clone(all), func(g gate) bool { return slices.Contains(names, g.name) })
}

// gateHold keeps a release where it is while its document or its promotion file
// says so.
func gateHold(in Input, m moving) verdict {
	if !userHolds(in, m.spec) {
		return verdict{done: true}
	}
	by := "paused: true in the Rollout document"
	if in.Promotion.Says(rollout.Hold, in.State.Release.Hash) {
		by = "decision: hold by " + orElse(in.Promotion.Author, "a promotion file")
	}
	return verdict{paused: true, text: "the end of " + by}
}

func userHolds(in Input, spec rollout.Spec) bool {
	return spec.Paused || in.Promotion.Says(rollout.Hold, in.State.Release.Hash)
}

// gateHealed keeps a release where it is until the cluster has accepted what
// the present step asks for.
func gateHealed(in Input, m moving) verdict {
	if in.Answers.IsHealed() {
		return verdict{done: true}
	}
	s, ok := m.at(m.Step)
	return verdict{paused: ok && s.wait.traits().pauses, text: "the cluster to accept the objects of " + m.Name}
}

// gateWait asks the step itself.
func gateWait(in Input, m moving) verdict {
	s, ok := m.at(m.Step)
	if !ok {
		return verdict{done: true}
	}
	return s.wait.verdict(in, m)
}

// TimedPause returns the step whose pause the clock ends, for the promotion that
// ends it before: the furthest one if several workloads wait.
func TimedPause(in Input) (step int, found bool) {
	in.plans = in.plans.orNew()
	for _, m := range movers(in) {
		_, is := m.stage().wait.(timerWait)
		if is && !m.isThrough() && in.State.Phase != rollout.Aborting && !gates.verdict(in, m).due.IsZero() {
			step, found = max(step, m.Step), true
		}
	}
	return step, found
}

// Gate returns the step whose gate is shut, for the proposal that opens it: the
// furthest one if several workloads wait. It is false while no workload waits
// for a promotion.
func Gate(in Input) (step int, shut bool) {
	s := in.State
	in.plans = in.plans.orNew()
	if s.Release == nil || s.Stable == nil || s.Held != nil || s.Phase == rollout.Aborting {
		return 0, false
	}
	for _, m := range movers(in) {
		_, waits := m.stage().wait.(promotionWait)
		if _, is := inconclusive(in, m); (waits || is) && !waitForPeople(in, m).done {
			step, shut = max(step, m.Step), true
		}
	}
	return step, shut
}
