package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

func decideInFlight(in Input) Decision {
	s, head := in.State, in.Head.Render
	target := head.Release()
	missing, isLost := lostSpec(in)
	name, isRenamed := renamed(in)
	isRenamed = isRenamed && target == s.Release.Hash // otherwise the head supersedes the release
	reason := mustRetreat(in)
	goesBack := reason != ""
	if goesBack && s.Stable != nil && target != s.Stable.Hash { // the head may have a third version
		return rollback(in, cause{reason: reason, to: s.Stable.Commit, reject: true})
	}
	if d, waits := hookInFlight(in); waits && !goesBack && (s.Stable == nil || target != s.Stable.Hash) {
		if target != s.Release.Hash {
			d.Waiting += fmt.Sprintf("; commit %s by %s waits until then", in.Head.Commit.Short(), in.Head.Commit.Author)
		}
		return d
	}
	switch {
	case s.Draining != nil && (isLost || isRenamed || target != s.Release.Hash && target != s.Stable.Hash ||
		target == s.Release.Hash && changesHooks(in)):
		return keepFormer(in)
	case isLost:
		return withoutDocument(in, hold(s, rollout.HeldRolloutRemoved, fmt.Sprintf("the Rollout document of %s was "+
			"removed while its release %s is in flight; restore the document, revert the release, "+
			"or promote the release fully first", missing.Title(), s.Release.Hash), in.Head.Commit))
	case isRenamed:
		return withoutDocument(in, hold(s, rollout.HeldRenamed, fmt.Sprintf("%s while release %s is in flight, so all new "+
			"pods would start together; restore the old name and kind, abort the release, or promote the release fully",
			name, s.Release.Hash), in.Head.Commit))
	case target != s.Release.Hash:
		return leave(in, target)
	}
	if goesBack {
		reason += "; there is no stable version yet: push a version that works"
		return hold(s, rollout.HeldNoStable, reason, in.Head.Commit)
	}
	if in.Source == nil || in.Source.Digest != head.Digest {
		return adopt(in)
	}
	if workloads.IsPromoting(s) || s.Stable == nil {
		return decidePromoting(in)
	}
	return advance(in)
}

func leave(in Input, target rollout.Hash) Decision {
	s, head := in.State, in.Head.Commit
	if _, waits := afterwards(in); s.Stable == nil && !waits && servesAll(in, serves) {
		return complete(in) // all users are on the first version, so the next version has steps
	}
	switch {
	case s.Stable == nil && len(unstaged(in)) > 0: // other workloads already serve beside the first deployment
		in.State.Release, in.State.Progress, in.State.Analyses = nil, nil, nil
		return decideAtRest(in)
	case s.Stable == nil:
		why, is := unsettled(in)
		if !is && target != "" && len(s.Verified) > 0 && s.Verified[0] == s.Release.Hash {
			is, why = true, fmt.Sprintf("release %s waits until all pods of %s are ready under their new name; otherwise "+
				"it would have no steps; to replace all pods together: gitrollout promote %s --full", target, s.Release.Hash, s.App)
		}
		if is && !in.Promotion.OpensAll(target) {
			return finishFirst(in, hold(s, rollout.HeldAdoption, why, head))
		}
		if d, shut := waitForWindow(in, "release "+string(target)); shut {
			return finishFirst(in, d)
		}
		return started(in, startFirst(in))
	case target == s.Stable.Hash:
		why := cause{reason: fmt.Sprintf("reverted by %s in %s", head.Author, head.Short()), to: head.ID}
		if e := in.Entry; e != nil && !e.Open { // the commit's other changes wait
			why.to = s.Stable.Commit
		}
		return rollback(in, why)
	case areMoved(in, s.Progress):
		return settled(in, Decision{State: s})
	case workloads.IsPromoting(s) && servesAll(in, isAllOn):
		return complete(in)
	case isMoving(in) && workloads.IsPromoting(s):
		return decidePromoting(in)
	case isMoving(in):
		in.Head.Render = followed(in)
		return advance(in)
	default:
		by := head.Author
		if target != "" {
			by = fmt.Sprintf("%s of %s", target, by)
		}
		return rollback(in, cause{reason: fmt.Sprintf("superseded by %s in %s", by, head.Short()), to: s.Stable.Commit})
	}
}

func mustRetreat(in Input) string {
	s := in.State
	switch {
	case s.Release == nil || s.Phase == rollout.Aborting:
		return ""
	case in.Promotion.Says(rollout.Abort, s.Release.Hash):
		return abortedBy(in.Promotion)
	case RequestedAbort(in) != "":
		return RequestedAbort(in)
	case s.Draining != nil:
		return watchFailed(in) // only an abort or the watch rolls a stable release back
	}
	reason := cmp.Or(measuredBad(in), timedOut(in))
	if late, is := lateExperiment(in); is {
		reason = cmp.Or(reason, late.reason)
	}
	if late, is := lateToAbort(in); is {
		reason = cmp.Or(reason, late.reason)
	}
	return reason
}

func abortedBy(p *rollout.Promotion) string {
	reason := "aborted by " + cmp.Or(p.Author, "a promotion file")
	if p.Reason != "" {
		reason += ": " + p.Reason
	}
	return reason
}

// advance moves each workload by at most one step.
func advance(in Input) Decision {
	if areMoved(in, in.State.Progress) {
		if d, waits := afterwards(in); waits {
			return d
		}
	}
	d := Decision{State: in.State}
	s := &d.State
	s.Progress = slices.Clone(s.Progress)
	moved, needs, waits := []string(nil), []Need(nil), []verdict(nil)
	for _, m := range stagedIn(in) {
		if m.IsThrough() {
			continue
		}
		d.Requeue = rollout.Soonest(d.Requeue, nextPod(m, in))
		if isSuspended(m) != m.Suspended {
			next, what := suspended(m, in)
			s.Progress[indexOf(m, *s)] = next
			moved = append(moved, what)
			continue
		}
		v := verdictAt(m, in)
		next, what := moveOf(m, in, v)
		switch {
		case what == "":
			d.Requeue = rollout.Soonest(d.Requeue, v.due)
			waits = append(waits, v)
			continue
		case v.route:
			needs = append(needs, needsOf(in, m)...)
		case v.by != "":
			s.Analyses = acceptedBy(s.Analyses, m, v.by)
		}
		s.Progress[indexOf(m, *s)] = next
		moved = append(moved, what)
	}
	d.Waiting = strings.Join(rollout.Mapped(waits, func(v verdict) string { return v.text }), "; ")
	if len(moved) == 0 {
		return settled(in, rest(in, d, waits))
	}
	s.Phase, s.Reason = phaseOf(in, s.Progress), ""
	d.Subject = s.App + " " + strings.Join(moved, ", ")
	if s.Draining != nil {
		d.Subject = formerGoes(*s)
	}
	d.Ask = askEndpoints(in, needs)
	return settled(in, d)
}

func indexOf(m workloads.Staged, s rollout.State) int {
	return slices.IndexFunc(s.Progress, func(p rollout.Progress) bool { return p.Workload == m.Workload })
}

// nextPod returns when a pod next changes the decision. With a router, a pod counts once proxies know it. With in-place
// scaling or surplus pods, it counts once it has been ready for minReadySeconds, even during a pause.
func nextPod(m workloads.Staged, in Input) (due time.Time) {
	if m.Routing != nil {
		due = workloads.ServesNext(in.Now, workloads.Learnt(m.Routing), m.Live.Revisions...)
	}
	if m.Routing != nil && m.Routed != nil { // surplus pods may stop once no proxy sends them requests
		due = rollout.Soonest(due, laterOnly(workloads.SettledAt(m.Routed.At, in.Applied, m.Routing.Settle), in.Now))
	}
	if mayShare(m) {
		for _, t := range podsOf(in, m, m.Stage().Wait.(plan.ExperimentWait).Experiment) {
			due = rollout.Soonest(due, workloads.ServesNext(in.Now, workloads.Learnt(m.Routing), t.live))
		}
	}
	want := m.Want()
	if m.Spec.Scaling == rollout.InPlace || m.Fresh.Desired > want.Canary || m.Stable.Desired > want.Stable {
		due = rollout.Soonest(due, workloads.ServesNext(in.Now, plan.MinReady(m.Spec), m.Live.Revisions...))
	}
	return due
}

// verdictAt never delays a lower weight.
func verdictAt(m workloads.Staged, in Input) verdict {
	v, full := endShares(in, m), m.Step < m.Passed && isOpenFully(m, in) && fullGates.verdict(in, m).done
	switch {
	case in.unshares || full && !v.done:
		v.done, v.text = false, cmp.Or(v.text, "requests to experiments to end")
		return v
	case full:
		return verdict{done: true, by: promoter(in), full: true}
	}
	if m.NeedsRouting() && m.Routed != nil && m.Weight < m.Routed.Weight {
		if v := waitForPods(in, m); v.route {
			return v
		}
	}
	if ridesAlong(m, in) && gateHold(in, m).done {
		return verdict{done: true, rides: true}
	}
	return gates.verdict(in, m)
}

// suspended records that the workload was scaled to 0 or has replicas again. Either restarts the step.
func suspended(m workloads.Staged, in Input) (rollout.Progress, string) {
	next := m.Progress
	next.Suspended, next.Entered, next.Available, next.Peak = !m.Suspended, rollout.NextTenth(in.Now), nil, nil
	unit := map[bool]string{true: "nodes", false: "replicas"}[m.Spec.OnNodes()]
	if next.Suspended {
		return next, fmt.Sprintf("Suspended: 0 %s at step %d/%d %s", unit, m.Step+1, m.Of, m.Name)
	}
	return next, fmt.Sprintf("%d %s: step %d/%d %s begins", m.N, unit, m.Step+1, m.Of, m.Name)
}

func moveOf(m workloads.Staged, in Input, v verdict) (rollout.Progress, string) {
	next := m.Progress
	switch {
	case v.route:
		next.Routed = &rollout.Routing{
			Step: m.Step, Weight: m.RoutedWeight(m.Stage()), At: rollout.NextTenth(in.Now), Shares: v.shares,
		}
		m.Progress = next
		return next, routes.RoutedText(m)
	case v.begins:
		next.Available = new(rollout.NextTenth(in.Now))
		return next, fmt.Sprintf("pods of the experiment at step %d/%d are available", m.Step+1, m.Of)
	case !v.done:
		return next, ""
	}
	step := m.Step + 1
	switch {
	case v.full:
		step = m.Passed
	case v.rides:
		step = m.PromotionStep()
	}
	next = m.Enter(step, in.Now)
	next.Entered = in.sinceHanded(m.Compiled, next)
	next.Opened, next.Routed, next.Left = v.by, m.Routed, m.Left
	next.PodHash, next.StablePodHash = cmp.Or(m.Fresh.Pin.Value, m.PodHash), cmp.Or(m.Stable.Pin.Value, m.StablePodHash)
	return next, stepText(m.Progress, next, v.by)
}

func stepText(from, to rollout.Progress, by string) string {
	text := fmt.Sprintf("step %d/%d %s", to.Step+1, to.Of, to.Name)
	if to.Step == to.Of {
		text = "through its steps, promoting"
	}
	if to.Weight != from.Weight {
		text += fmt.Sprintf(" (%d%% -> %d%%)", from.Weight, to.Weight)
	}
	if by != "" {
		text += ", promoted by " + by
	}
	return text
}

func rest(in Input, d Decision, waits []verdict) Decision {
	phase, reason := rollout.Progressing, ""
	for _, w := range waits {
		reason = cmp.Or(reason, w.broken)
	}
	works := func(w verdict) bool { return !w.paused }
	switch late, ok := overdue(in); {
	case reason != "":
		phase, reason = rollout.Stalled, toldReason(d.State, reason)
	case len(waits) > 0 && !slices.ContainsFunc(waits, works):
		phase = rollout.Paused
	case ok:
		phase, reason = rollout.Stalled, toldReason(d.State, late.reason)
	case !late.at.IsZero():
		d.Requeue = rollout.Soonest(d.Requeue, late.at)
	}
	aborts, _ := lateToAbort(in)
	d.Requeue = rollout.Soonest(d.Requeue, laterOnly(aborts.at, in.Now))
	if phase != rollout.Stalled {
		var due time.Time
		reason, due = lessRouted(in)
		reason, d.Requeue = cmp.Or(reason, in.Health.Lasts), rollout.Soonest(d.Requeue, due)
	}
	switch {
	case d.State.Phase != phase:
		d.Subject = fmt.Sprintf("%s %s", d.State.App, describe(phase, d.Waiting, reason))
	case d.State.Reason != reason:
		d.Subject = d.State.App + " " + cmp.Or(reason, "goes on")
	}
	d.State.Phase, d.State.Reason = phase, reason
	return d
}

func describe(phase rollout.Phase, waiting, reason string) string {
	switch phase {
	case rollout.Paused:
		return "paused: waits for " + waiting
	case rollout.Stalled:
		return "stalled: " + reason
	default:
		return "goes on"
	}
}

func decidePromoting(in Input) Decision {
	s := in.State
	switch {
	case s.Draining != nil:
		return removeFormer(in)
	case areMoved(in, s.Progress):
		return settled(in, Decision{State: s})
	}
	late, isLate := overdue(in)
	aborts, _ := lateToAbort(in)
	d := Decision{State: s, Requeue: laterOnly(aborts.at, in.Now)}
	if isContent(s.Release) {
		d.Waiting, _ = unready(in, s.Release.Since)
	}
	d.Waiting = cmp.Or(d.Waiting, "all pods to have the new version and to be available")
	if servesAll(in, serves) {
		if in.Answers.IsHealed() {
			return complete(in)
		}
		d.Waiting = "the cluster to accept all objects of " + rollout.ShortID(s.Source)
		late = refused(in)
		isLate = late.isOver(in.Now)
	}
	next := &d.State
	next.Phase = map[bool]rollout.Phase{true: rollout.Progressing, false: rollout.Promoting}[s.Stable == nil]
	switch {
	case isLate:
		next.Phase, next.Reason = rollout.Stalled, toldReason(s, late.reason)
	default:
		d.Requeue = rollout.Soonest(d.Requeue, late.at)
		if s.Stable != nil || s.Phase == rollout.Stalled {
			next.Reason = ""
		}
	}
	if next.Phase != s.Phase {
		d.Subject = fmt.Sprintf("%s %s: %s", s.App, strings.ToLower(string(next.Phase)), cmp.Or(next.Reason, "goes on"))
	}
	for _, spec := range releaseSpecs(in) {
		live, exists := in.Observed.Workloads[spec.Workload]
		d.Waiting += workloads.StandsStill(spec, live, exists)
		d.Requeue = rollout.Soonest(d.Requeue, workloads.ServesNext(in.Now, plan.MinReady(spec), live.Revisions...))
	}
	return d
}

// toldReason keeps the recorded reason of a stall, because messages about pods often change.
func toldReason(s rollout.State, reason string) string {
	if s.Phase == rollout.Stalled {
		return s.Reason
	}
	return reason
}

func complete(in Input) Decision {
	if d, waits := afterwards(in); waits {
		return d
	}
	s, stable := in.State, stableOf(in)
	s.Pong, s.Spent, s.Hooks = swapped(in), spend(in, s), pastHooks(s.Hooks)
	s.Stable, s.Analyses, s.Verified = &stable, endedRuns(in), remember(s.Verified, stable.Hash)
	return Decision{State: s.AtRest(rollout.Healthy, ""), Subject: healthyText(s.App, stable)}
}
