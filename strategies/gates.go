package strategies

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// gate is a reason not to advance.
type gate struct {
	name    string
	verdict func(Input, workload) verdict
}

// verdict is the result of a gate: whether a step is done and, if not, the reason.
type verdict struct {
	done   bool
	by     string    // who opened the gate, "" if it needed no promotion
	text   string    // the wait, for users
	paused bool      // it waits for users or the clock, not for pods
	due    time.Time // when a timed wait ends, zero if it is not timed
	broken string    // why waiting does not help, "" if it may
	route  bool      // the step's pods serve: its weight and routes may be applied
	full   bool      // a full promotion passes all remaining steps
	rides  bool      // it has no pods, and the release's other workloads have passed their steps
	begins bool      // the experiment's pods are available: its duration and its analyses begin
}

// gates lists all reasons not to advance; the first that is not done decides. No gate delays a rollback.
var gates = gateList{
	{"hold", gateHold},
	{"base", gateBase},
	{"healed", gateHealed},
	{"suspended", gateSuspended},
	{"routers", gateRouters},
	{"inconclusive", gateInconclusive},
	{"wait", gateWait},
	{"window", gateWindow},
}

// fullGates are the gates that a full promotion does not open.
var fullGates = gates.except("base", "suspended", "routers", "inconclusive", "wait")

type gateList []gate

func (all gateList) verdict(in Input, m workload) verdict {
	by := ""
	for _, g := range all {
		v := g.verdict(in, m)
		if !v.done {
			return v
		}
		by = cmp.Or(by, v.by)
	}
	return verdict{done: true, by: by}
}

func (all gateList) except(names ...string) gateList {
	return slices.DeleteFunc(slices.Clone(all), func(g gate) bool { return slices.Contains(names, g.name) })
}

// gateHold keeps a release at its step while its document has paused: true or its promotion file holds it.
func gateHold(in Input, m workload) verdict {
	if by := holder(in, in.State.Release.Hash, m.Spec.Paused); by != "" {
		return verdict{paused: true, text: "the end of " + by + reasonOf(in, by)}
	}
	return verdict{done: true}
}

// holder returns the source of a hold on a release, "" if none.
func holder(in Input, release rollout.Hash, paused bool) string {
	switch {
	case in.Promotion.Says(rollout.Hold, release):
		return holdBy + promoter(in)
	case paused:
		return "paused: true in the Rollout document"
	default:
		return ""
	}
}

// keptBack returns the source of a hold on the head's release before its first step, "" if none.
func keptBack(in Input) string {
	head := in.Head.Render
	paused := func(s rollout.Spec) bool {
		return s.Paused && in.State.StableHash(s.Workload) != head.Templates[s.Workload]
	}
	return holder(in, head.Release(), slices.ContainsFunc(head.Specs, paused))
}

// gateHealed keeps a release at its step until the cluster has accepted the step's objects.
func gateHealed(in Input, m workload) verdict {
	if in.Answers.IsHealed() {
		return verdict{done: true}
	}
	s, ok := m.At(m.Step)
	return verdict{paused: ok && s.Wait.Traits().Pauses, text: "the cluster to accept the objects of " + m.Name}
}

// gateSuspended keeps a release, unless fully promoted, at its step while its workload has no replicas to judge.
func gateSuspended(in Input, m workload) verdict {
	if !m.isSuspended() || in.Promotion.OpensAll(in.State.Release.Hash) || m.ridesAlong(in) {
		return verdict{done: true}
	}
	if m.Spec.OnNodes() {
		return verdict{paused: true, text: "nodes that it may run on (Suspended: 0 nodes; see taints and nodeSelector)"}
	}
	return verdict{paused: true, text: "pods (Suspended: 0 replicas)"}
}

// isSuspended reports whether the workload has no replicas before the decision to promote.
func (m workload) isSuspended() bool { return m.exists && m.n == 0 && m.Step < m.PromotionStep() }

// ridesAlong reports whether a workload without replicas advances with the others, whose users have all moved.
func (m workload) ridesAlong(in Input) bool {
	others := slices.DeleteFunc(workloads(in), func(m workload) bool { return m.n == 0 })
	return m.isSuspended() && len(others) > 0 && m.isFree(in, m.PromotionStep()) &&
		!slices.ContainsFunc(others, func(m workload) bool { at, _ := m.MovedAt(); return m.Step < at })
}

// isFree reports whether a workload without replicas needs no promotion and no verdict before a later step.
func (m workload) isFree(in Input, until int) bool {
	if m.Background != nil && m.Step < m.PromotionStep() && !m.isOpenFully(in) {
		return false
	}
	for i := m.Step; i < until; i++ {
		at := m
		at.Step = i
		switch at.stage().Wait.(type) {
		case plan.PromotionWait, plan.AnalysisWait, plan.ExperimentWait:
			if !at.isOpen(in) {
				return false
			}
		}
	}
	return true
}

// gateWait returns the verdict of the step's wait.
func gateWait(in Input, m workload) verdict {
	s, ok := m.At(m.Step)
	if !ok {
		return verdict{done: true}
	}
	switch s.Wait.(type) {
	case plan.PromotionWait, plan.AnalysisWait, plan.ExperimentWait:
		if in.State.Draining != nil { // the release is stable by its workloads that have pods
			return verdict{done: true}
		}
	}
	return verdictOf(s.Wait, in, m)
}

const holdBy = "decision: hold by "

// reasonOf returns a hold's reason, for display. The record has only its author.
func reasonOf(in Input, by string) string {
	if !strings.HasPrefix(by, holdBy) || in.Promotion.Reason == "" {
		return ""
	}
	return ": " + in.Promotion.Reason
}

// whoHeld returns a hold without a known author with the recorded one: a new process has not seen the file's moves.
func whoHeld(p *rollout.Promotion, held *rollout.Held) *rollout.Promotion {
	if p == nil || p.Author != "" || held == nil {
		return p
	}
	known := *p
	_, known.Author, _ = strings.Cut(held.Message, holdBy)
	return &known
}

// verdictOf returns whether a workload may leave a stage with this wait.
func verdictOf(w plan.Wait, in Input, m workload) verdict {
	switch w := w.(type) {
	case plan.PodsWait:
		return waitForPods(in, m)
	case plan.AnalysisWait:
		return waitForAnalysis(w, in, m)
	case plan.ExperimentWait:
		return waitForExperiment(w, in, m)
	case plan.PromotionWait:
		return promotionOrTimeout(w, in, m)
	case plan.TimerWait:
		return waitForTime(w, in, m)
	case plan.DelayWait:
		return waitUntil(in, m, m.Entered.Add(w.Duration))
	default:
		return verdict{done: true}
	}
}
