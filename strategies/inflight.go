package strategies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// decideInFlight handles a release between its first step and its promotion.
func decideInFlight(in Input) Decision {
	s, head := in.State, in.Head.Render
	target := head.Release()
	if missing, ok := lostSpec(in); ok {
		msg := fmt.Sprintf("the Rollout document of %s %s was removed while its release %s is in flight; "+
			"restore it, revert the release, or promote it fully first", missing.Ref().Kind, missing, s.Release.Hash)
		return hold(s, rollout.HeldRolloutRemoved, msg, in.Head.Commit.ID)
	}
	if target != s.Release.Hash {
		return leave(in, target)
	}
	if reason, ok := mustRetreat(in); ok {
		if s.Stable == nil {
			reason += "; there is no stable version yet: push a version that works"
			return hold(s, rollout.HeldNoStable, reason, in.Head.Commit.ID)
		}
		return retreat(in, cause{reason: reason, to: s.Stable.Commit, reject: true})
	}
	if in.Source == nil || in.Source.Digest != head.Digest || replanned(in) {
		if raises(in) {
			if d, shut := waitForWindow(in, "the new list of steps"); shut {
				return d
			}
		}
		return adopt(in)
	}
	if s.Phase == rollout.Promoting || s.Stable == nil {
		return decidePromoting(in)
	}
	return advance(in)
}

// lostSpec finds a workload of the release whose Rollout document is no longer
// in Git although its Deployment is. Without the document nothing says how to
// move it, and a plain apply would be a full release.
func lostSpec(in Input) (rollout.Workload, bool) {
	for _, p := range in.State.Progress {
		if _, has := in.Head.Render.Spec(p.Workload); has {
			continue
		}
		if _, exists := in.Head.Render.Templates[p.Workload]; exists {
			return p.Workload, true
		}
	}
	return rollout.Workload{}, false
}

// leave handles a head that no longer asks for the release in flight.
func leave(in Input, target rollout.Hash) Decision {
	s := in.State
	head := in.Head.Commit
	switch {
	case s.Stable == nil:
		if d, shut := waitForWindow(in, "release "+string(target)); shut {
			return finishFirst(in, d)
		}
		return startFirst(in)
	case target == s.Stable.Hash:
		return retreat(in, cause{reason: fmt.Sprintf("reverted by %s in %s", head.Author, head.Short()), to: head.ID})
	default:
		return retreat(in, cause{
			reason: fmt.Sprintf("superseded by %s of %s in %s", target, head.Author, head.Short()), to: s.Stable.Commit,
		})
	}
}

// replanned reports whether the recorded steps are not those that the document
// compiles to, although Git has not changed: another version of this program
// recorded them.
func replanned(in Input) bool {
	return in.State.Phase != rollout.Promoting && slices.ContainsFunc(movers(in), moving.isReplanned)
}

func (m moving) isReplanned() bool { return m.digest() != m.Plan }

// adopt follows a change that is not a new version: replicas, Services, steps.
// A changed list of steps goes on where no pod has to move back.
func adopt(in Input) Decision {
	s := in.State
	s.Source = in.Head.Commit.ID
	s.Progress = slices.Clone(s.Progress)
	subject := fmt.Sprintf("%s follows %s during release %s", s.App, in.Head.Commit.Short(), s.Release.Hash)
	for _, m := range movers(in) { // without those whose Deployment left the app; the promotion removes it
		if s.Phase == rollout.Promoting || !m.isReplanned() {
			continue
		}
		next := m.progress(m.resume(m.Weight), in.Now)
		if m.Routed != nil { // the new list says which users are matched, and its step which weight is next
			next.Routed = &rollout.Routing{Step: next.Step, Weight: m.Routed.Weight, At: m.Routed.At}
		}
		s.Progress[m.index(s)] = next
		ofThis := func(r rollout.AnalysisRun) bool { return isRunOf(r, m.Workload) }
		s.Analyses = slices.DeleteFunc(slices.Clone(s.Analyses), ofThis)
		subject = fmt.Sprintf("%s steps changed by %s, goes on at %s", s.App, in.Head.Commit.Short(), next.Name)
	}
	if s.Phase != rollout.Promoting && s.Stable != nil {
		s.Phase = phaseOf(in, s.Progress)
	}
	return Decision{State: s, Subject: subject}
}

// mustRetreat says why the release in flight must go back, if it must.
func mustRetreat(in Input) (string, bool) {
	s := in.State
	if s.Release == nil || s.Phase == rollout.Aborting {
		return "", false
	}
	if in.Promotion.Says(rollout.Abort, s.Release.Hash) {
		reason := "aborted by " + orElse(in.Promotion.Author, "a promotion file")
		if in.Promotion.Reason != "" {
			reason += ": " + in.Promotion.Reason
		}
		return reason, true
	}
	if reason, ok := measuredBad(in); ok {
		return reason, true
	}
	if reason, ok := timedOut(in); ok {
		return reason, true
	}
	if late, ok := lateExperiment(in); ok {
		return late.reason, true
	}
	if late, ok := overdue(in); ok && late.aborts && s.Stable != nil {
		return late.reason, true
	}
	return "", false
}

// advance moves each workload of the release at most one step on. The app
// reaches Promoting when all of them are through their steps.
func advance(in Input) Decision {
	d := Decision{State: in.State}
	s := &d.State
	s.Progress = slices.Clone(s.Progress)
	var moved []string
	var needs []Need
	var waits []verdict
	for _, m := range movers(in) {
		if m.isThrough() {
			continue
		}
		d.Requeue = soonest(d.Requeue, m.nextPod(in))
		v := m.verdict(in)
		next, what := m.move(in, v)
		switch {
		case what == "":
			d.Requeue = soonest(d.Requeue, v.due)
			waits = append(waits, v)
			continue
		case v.route:
			needs = append(needs, needsOf(in, m)...)
		case v.by != "":
			s.Analyses = acceptedBy(s.Analyses, m.Workload, v.by)
		}
		s.Progress[m.index(*s)] = next
		moved = append(moved, what)
	}
	d.Waiting = textOf(waits)
	if len(moved) == 0 {
		return rest(in, d, waits)
	}
	s.Phase, s.Reason = phaseOf(in, s.Progress), ""
	d.Subject = s.App + " " + strings.Join(moved, ", ")
	d.Ask = askEndpoints(in, needs)
	return d
}

// index is where a state has the progress of the workload.
func (m moving) index(s rollout.State) int {
	return slices.IndexFunc(s.Progress, func(p rollout.Progress) bool { return p.Workload == m.Workload })
}

func textOf(waits []verdict) string {
	texts := make([]string, len(waits))
	for i, w := range waits {
		texts[i] = w.text
	}
	return strings.Join(texts, "; ")
}

// nextPod is when the next pod can be counted on. What pods can bear of the
// requests, they can when proxies know of them. And where pods are replaced in
// place, each one that serves makes room for the next, at a pause too: an
// autoscaler may have asked for it.
func (m moving) nextPod(in Input) (due time.Time) {
	if m.routing != nil {
		due = servesNext(in.Now, learnt(m.routing), m.live.Revisions...)
	}
	if m.spec.Scaling == rollout.InPlace {
		due = soonest(due, servesNext(in.Now, minReady(m.spec), m.live.Revisions...))
	}
	return due
}

// verdict asks all gates or, where somebody has promoted the release fully, those
// that this does not open.
func (m moving) verdict(in Input) verdict {
	full := in.Promotion.OpensAll(in.State.Release.Hash) && m.Step < m.passed
	if full && fullGates.verdict(in, m).done {
		return verdict{done: true, by: promoter(in), full: true}
	}
	return gates.verdict(in, m)
}

// move is how far a workload has come after a verdict, and that in words; "" if
// it stays where it is.
func (m moving) move(in Input, v verdict) (rollout.Progress, string) {
	next := m.Progress
	switch {
	case v.route:
		next.Routed = &rollout.Routing{Step: m.Step, Weight: m.Weight, At: rollout.NextTenth(in.Now)}
		return next, m.routedText()
	case v.begins:
		next.Available = new(rollout.NextTenth(in.Now))
		return next, fmt.Sprintf("pods of the experiment at step %d/%d are available", m.Step+1, m.Of)
	case !v.done:
		return next, ""
	}
	step := m.Step + 1
	if v.full {
		step = m.passed
	}
	next = m.progress(step, in.Now)
	next.Opened, next.Routed = v.by, m.Routed
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

// rest is a pass in which nothing moved: the phase says whether the release
// waits for people or for pods, and whether it has waited too long. Where waiting
// does not help, that is so at once.
func rest(in Input, d Decision, waits []verdict) Decision {
	phase, reason := rollout.Progressing, ""
	for _, w := range waits {
		reason = orElse(reason, w.broken)
	}
	works := func(w verdict) bool { return !w.paused }
	switch late, ok := overdue(in); {
	case reason != "":
		phase = rollout.Stalled
	case len(waits) > 0 && !slices.ContainsFunc(waits, works):
		phase = rollout.Paused
	case ok:
		phase, reason = rollout.Stalled, late.reason
	case !late.at.IsZero():
		d.Requeue = soonest(d.Requeue, late.at)
	}
	if d.State.Phase != phase {
		d.Subject = fmt.Sprintf("%s %s", d.State.App, describe(phase, d.Waiting, reason))
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

// decidePromoting waits until every pod is of the new version and available.
func decidePromoting(in Input) Decision {
	s := in.State
	if complete(in, in.Head.Render) && in.Answers.IsHealed() {
		stable := *s.Release
		stable.Since, stable.Fast = rollout.Second(in.Now), false
		s.Pong = swapped(in)
		s.Stable, s.Release, s.Progress, s.Analyses = &stable, nil, nil, nil
		s.Phase, s.Reason, s.Verified = rollout.Healthy, "", remember(s.Verified, stable.Hash)
		commit := rollout.ShortID(stable.Commit)
		subject := fmt.Sprintf("%s healthy at %s (%s by %s)", s.App, stable.Hash, commit, stable.Author)
		return Decision{State: s, Subject: subject}
	}
	phase := rollout.Promoting
	if s.Stable == nil {
		phase = rollout.Progressing
	}
	d := Decision{State: s, Waiting: "all pods to be of the new version and available"}
	late, isLate := overdue(in)
	switch {
	case isLate && s.Stable == nil:
		phase, d.State.Reason = rollout.Stalled, late.reason
	case isLate:
		d.State.Reason = late.reason // Promoting stays the phase: it is what the objects follow from
	case s.Phase == rollout.Stalled:
		d.State.Reason = ""
	}
	if !isLate && !late.at.IsZero() {
		d.Requeue = late.at
	}
	if d.State.Reason != s.Reason || phase != s.Phase {
		d.Subject = fmt.Sprintf("%s %s: %s", s.App, strings.ToLower(string(phase)), orElse(d.State.Reason, "goes on"))
	}
	d.State.Phase = phase
	return d
}

// complete reports whether every staged workload of a render runs nothing but
// that render's template, available.
func complete(in Input, r *rollout.Render) bool {
	for _, spec := range r.Specs {
		live, ok := in.Observed.Workloads[spec.Workload]
		if !ok || !live.Complete || live.Hash != r.Templates[spec.Workload] || oldPods(live) {
			return false
		}
	}
	return true
}

// oldPods reports whether pods of an older template are left. The Deployment's
// status says so too, but later: it adds up what ReplicaSets have reported, and
// one that is scaled down at once may not have reported the pods it had.
func oldPods(live rollout.ObservedWorkload) bool {
	return slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool {
		return !r.Current && r.Hash != live.Hash && r.Pods > 0
	})
}

func soonest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
