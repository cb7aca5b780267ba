package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
	"gitrollout.dev/gitrollout/traffic"
)

type gate struct {
	name    string
	verdict func(Input, workloads.Staged) verdict
}

type verdict struct {
	done   bool
	by     string // the opening promotion's author, or ""
	text   string
	paused bool      // waits for users or the clock, not for pods
	due    time.Time // end of a timed wait, or zero
	broken string    // why the gate cannot open by itself, or ""
	route  bool      // pods are ready for the step's weight and routes
	full   bool      // a full promotion skips all remaining steps
	rides  bool      // the workload has no replicas and advances with the other workloads
	begins bool      // experiment pods are available, so duration and analyses begin
	shares bool      // if route is true: the experiment's pods also get requests
}

// gates are checked in order. The first closed gate keeps a workload at its step. No gate delays a rollback.
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

var fullGates = gates.except("base", "suspended", "routers", "inconclusive", "wait")

type gateList []gate

func (all gateList) verdict(in Input, m workloads.Staged) verdict {
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

func gateHold(in Input, m workloads.Staged) verdict {
	if by := holder(in, in.State.Release.Hash, m.Spec.Paused); by != "" {
		return verdict{paused: true, text: "the end of " + by + reasonOf(in, by)}
	}
	return verdict{done: true}
}

func holder(in Input, release rollout.Hash, paused bool) string {
	switch {
	case in.Promotion.Says(rollout.Hold, release):
		return holdBy + promoter(in)
	case paused:
		return "paused: true in the Rollout document"
	}
	return ""
}

func keptBack(in Input) string {
	head := in.Head.Render
	paused := func(s rollout.Spec) bool {
		return s.Paused && in.State.StableHash(s.Workload) != head.Templates[s.Workload]
	}
	return holder(in, head.Release(), slices.ContainsFunc(head.Specs, paused))
}

func gateHealed(in Input, m workloads.Staged) verdict {
	if in.Answers.IsHealed() {
		return verdict{done: true}
	}
	s, ok := m.At(m.Step)
	return verdict{paused: ok && s.Wait.Traits().Pauses, text: "the cluster to accept the objects of " + m.Name}
}

// gateSuspended keeps a workload without replicas at its step, until a full promotion or until the other workloads have
// moved all users.
func gateSuspended(in Input, m workloads.Staged) verdict {
	if !isSuspended(m) || in.Promotion.OpensAll(in.State.Release.Hash) || ridesAlong(m, in) {
		return verdict{done: true}
	}
	if m.Spec.OnNodes() {
		return verdict{paused: true, text: "nodes that its pods may run on (Suspended: 0 nodes; see taints and nodeSelector)"}
	}
	return verdict{paused: true, text: "pods (Suspended: 0 replicas)"}
}

func isSuspended(m workloads.Staged) bool { return m.Exists && m.N == 0 && m.Step < m.PromotionStep() }

func ridesAlong(m workloads.Staged, in Input) bool {
	others := slices.DeleteFunc(stagedIn(in), func(m workloads.Staged) bool { return m.N == 0 })
	return isSuspended(m) && len(others) > 0 && isFree(m, in, m.PromotionStep()) &&
		!slices.ContainsFunc(others, func(m workloads.Staged) bool { at, _ := m.MovedAt(); return m.Step < at })
}

// isFree reports whether a workload without replicas can reach a later step without another promotion or analysis.
func isFree(m workloads.Staged, in Input, until int) bool {
	if m.Background != nil && m.Step < m.PromotionStep() && !isOpenFully(m, in) {
		return false
	}
	for i := m.Step; i < until; i++ {
		at := m
		at.Step = i
		switch at.Stage().Wait.(type) {
		case plan.PromotionWait, plan.AnalysisWait, plan.ExperimentWait:
			if !isOpen(at, in) {
				return false
			}
		}
	}
	return true
}

func gateWait(in Input, m workloads.Staged) verdict {
	wait := m.Stage().Wait // nil after the last stage
	switch wait.(type) {
	case plan.PromotionWait, plan.AnalysisWait, plan.ExperimentWait:
		if in.State.Draining != nil { // the other workloads have made the release stable
			return verdict{done: true}
		}
	}
	return verdictOf(wait, in, m)
}

const holdBy = "decision: hold by "

// reasonOf returns a hold's reason from the promotion file, because the recorded state has only the author.
func reasonOf(in Input, by string) string {
	if !strings.HasPrefix(by, holdBy) || in.Promotion.Reason == "" {
		return ""
	}
	return ": " + in.Promotion.Reason
}

func whoHeld(p *rollout.Promotion, held *rollout.Held) *rollout.Promotion {
	if p == nil || p.Author != "" || held == nil {
		return p
	}
	known := *p
	_, known.Author, _ = strings.Cut(held.Message, holdBy)
	return &known
}

func verdictOf(w plan.Wait, in Input, m workloads.Staged) verdict {
	switch w := w.(type) {
	case plan.PodsWait:
		return waitForPods(in, m)
	case plan.AnalysisWait:
		return waitForAnalysis(w, in, m)
	case plan.ExperimentWait:
		return waitForExperiment(w, in, m)
	case plan.PromotionWait:
		return waitForPeople(in, m)
	case plan.TimerWait:
		return waitForTime(w, in, m)
	case plan.DelayWait:
		return waitUntil(in, m, m.Entered.Add(w.Duration))
	}
	return verdict{done: true}
}

// gateBase waits while Kubernetes wrongly gives all pods the new version.
func gateBase(_ Input, m workloads.Staged) verdict {
	if !m.IsTakenForAll() {
		return verdict{done: true}
	}
	const why = "Kubernetes uses the new version for all pods, although no step requests so many new pods"
	text := "all pods to return to the stable version first: " + why
	return verdict{text: text, broken: why + ": all pods return to the stable version first"}
}

// gateWindow starts no further step while the calendar allows no releases. A promotion in progress continues. So does a
// version that was verified before, because users might need this version.
func gateWindow(in Input, m workloads.Staged) verdict {
	if in.State.Release.Fast || m.Step >= m.PromotionStep() {
		return verdict{done: true}
	}
	shut, is := in.Calendar.ShutAt(in.Now)
	if !is {
		return verdict{done: true}
	}
	return verdict{paused: true, due: shut.Until, text: waitText(shut)}
}

func waitText(s rollout.Shut) string { return s.Cause() + s.When() }

// waitForWindow keeps an app at its commit while the calendar or a hold delays the head's release.
func waitForWindow(in Input, what string) (Decision, bool) {
	shut, is := in.Calendar.ShutAt(in.Now)
	by := keptBack(in)
	if !is && by == "" {
		return Decision{}, false
	}
	s, head := in.State, in.Head.Commit
	beforeRelease(&s)
	until := "for the release windows to open"
	waits := waitText(shut)
	switch {
	case by != "":
		until, waits = "for the end of "+by, "the end of "+by+reasonOf(in, by)
	case shut.Exact:
		until = shut.When()[len(", "):]
	case shut.Freeze != nil:
		until = "for " + shut.Cause()
	}
	message := fmt.Sprintf("%s of %s by %s waits %s", what, head.Short(), head.Author, until)
	d := hold(s, rollout.HeldClosed, message, head)
	d.Subject = fmt.Sprintf("%s: %s", s.App, d.Waiting)
	d.Waiting, d.Requeue = waits, shut.Until
	return d, true
}

func beforeRelease(s *rollout.State) {
	s.Phase = cmp.Or(s.Phase, rollout.Pending)
	isOver := s.Release == nil && s.Rollback == nil
	if isOver && !slices.Contains([]rollout.Phase{rollout.Pending, rollout.Healthy, rollout.Degraded}, s.Phase) {
		s.Phase, s.Reason, s.Analyses = rollout.Healthy, "", nil
	}
}

// untilOnly removes a message's commit and author, which a new process may not know.
func untilOnly(message string) string {
	what, rest, _ := strings.Cut(message, " of ")
	_, until, _ := strings.Cut(rest, " waits ")
	return what + " waits " + until
}

// finishFirst continues a first deployment while the next version waits, because no stable version serves users.
func finishFirst(in Input, wait Decision) Decision {
	if in.Source == nil {
		return wait
	}
	in.Head.Render = in.Source
	d := decidePromoting(in)
	d.State.Held, d.Requeue = wait.State.Held, rollout.Soonest(d.Requeue, wait.Requeue)
	d.Subject, d.Waiting = cmp.Or(d.Subject, wait.Subject), wait.Waiting
	return d
}

// gateRouters waits until routers accept the routes and proxies use them. If users edit the present step's weight, it
// first waits for the pods of the new weight.
func gateRouters(in Input, m workloads.Staged) verdict {
	if !isPodsStage(m) && m.NeedsRouting() {
		return waitForPods(in, m)
	}
	t := m.Routing
	if m.Routed == nil || t == nil {
		return verdict{done: true}
	}
	v := traffic.Verify(t.Routers, m.Workload.Namespace, in.Observed.Routes)
	switch due := workloads.SettledAt(m.Routed.At, in.Applied, t.Settle); {
	case v.Rejected:
		return verdict{text: "the router to take its objects: " + v.Text, broken: v.Text}
	case in.Now.Before(due):
		return verdict{
			paused: in.State.Phase == rollout.Paused, // a restart of gitrollout repeats this wait, but keeps the phase
			text:   fmt.Sprintf("proxies to learn of the new routes (%s)", t.Settle), due: due,
		}
	case !v.Taken:
		return verdict{text: "the router: " + v.Text}
	}
	return verdict{done: true}
}
