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
		msg := fmt.Sprintf("the Rollout document of Deployment %s was removed while its release %s is in flight; "+
			"restore it, revert the release, or promote it fully first", missing, s.Release.Hash)
		return hold(s, "RolloutRemoved", msg, in.Head.Commit.ID)
	}
	if target != s.Release.Hash {
		return leave(in, target)
	}
	if reason, ok := mustRetreat(in); ok {
		if s.Stable == nil {
			return hold(s, "NothingToReturnTo", reason+"; there is no stable version yet: push a version that works", in.Head.Commit.ID)
		}
		return retreat(in, cause{reason: reason, to: s.Stable.Commit, reject: true})
	}
	if in.Source == nil || in.Source.Digest != head.Digest || replanned(in) {
		if raises(in) {
			if d, shut := closed(in, "the new list of steps"); shut {
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
		if d, shut := closed(in, "release "+string(target)); shut {
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
	for _, p := range in.State.Progress {
		spec, ok := in.Head.Render.Spec(p.Workload)
		if ok && in.State.Phase != rollout.Promoting && planOf(spec).digest() != p.Plan {
			return true
		}
	}
	return false
}

// adopt follows a change that is not a new version: replicas, Services, steps.
// A changed list of steps goes on where no pod has to move back.
func adopt(in Input) Decision {
	s := in.State
	s.Source = in.Head.Commit.ID
	s.Progress = slices.Clone(s.Progress)
	subject := fmt.Sprintf("%s follows %s during release %s", s.App, in.Head.Commit.Short(), s.Release.Hash)
	for i, p := range s.Progress {
		spec, ok := in.Head.Render.Spec(p.Workload)
		if !ok {
			continue // the Deployment itself left the app; the promotion removes it
		}
		plan := planOf(spec)
		if plan.digest() == p.Plan || s.Phase == rollout.Promoting {
			continue
		}
		s.Progress[i] = progressAt(plan, p.Workload, plan.resume(p.Weight), in.Now)
		s.Analyses = slices.DeleteFunc(slices.Clone(s.Analyses), func(r rollout.AnalysisRun) bool { return isRunOf(r, p.Workload) })
		if p.Routed != nil { // the new list says which users are matched, and its step which weight is next
			s.Progress[i].Routed = &rollout.Routing{Step: s.Progress[i].Step, Weight: p.Routed.Weight, At: p.Routed.At}
		}
		subject = fmt.Sprintf("%s steps changed by %s, goes on at %s", s.App, in.Head.Commit.Short(), s.Progress[i].Name)
	}
	if s.Phase != rollout.Promoting && s.Stable != nil {
		s.Phase = phaseOf(in.Head.Render, s.Progress)
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
	if late, ok := overdue(in); ok && late.spec.ProgressDeadlineAbort && s.Stable != nil {
		return late.reason(), true
	}
	return "", false
}

// advance moves each workload of the release at most one step on. The app
// reaches Promoting when all of them are through their steps.
func advance(in Input) Decision {
	s := in.State
	s.Progress = slices.Clone(s.Progress)
	var moved, waits []string
	var needs []Need
	paused, broken := true, ""
	var due time.Time
	skip := in.Promotion.OpensAll(s.Release.Hash)
	for i, p := range s.Progress {
		spec, ok := in.Head.Render.Spec(p.Workload)
		if !ok || p.Step >= p.Of {
			continue
		}
		pl := planOf(spec)
		v := verdictAt(in, pl, p)
		next := p.Step + 1
		if skip && spec.Canary != nil && p.Step < len(spec.Canary.Steps) && !userHolds(in, spec) && in.Answers.IsSettled() && gateWindow(in, pl, p).done {
			v, next = verdict{done: true, by: promoter(in)}, len(spec.Canary.Steps)
		}
		if isRouted(spec) { // what pods can bear of the requests, they can when proxies know of them
			due = soonest(due, servesNext(in.Now, learnt(spec.Canary.Traffic), in.Observed.Workloads[p.Workload].Revisions...))
		}
		if spec.Scaling == rollout.InPlace {
			// Each pod that serves makes room for the next, at a pause too: an
			// autoscaler may have asked for it.
			due = soonest(due, servesNext(in.Now, minReady(spec), in.Observed.Workloads[p.Workload].Revisions...))
		}
		if v.route {
			s.Progress[i].Routed = &rollout.Routing{Step: p.Step, Weight: p.Weight, At: rollout.NextSecond(in.Now)}
			needs = append(needs, needsOf(in, spec)...)
			moved = append(moved, routedText(pl, p))
			continue
		}
		if v.begins {
			s.Progress[i].Available = new(rollout.NextSecond(in.Now))
			moved = append(moved, fmt.Sprintf("pods of the experiment at step %d/%d are available", p.Step+1, p.Of))
			continue
		}
		if !v.done {
			waits = append(waits, v.text)
			paused = paused && v.paused
			broken = orElse(broken, v.broken)
			due = soonest(due, v.due)
			continue
		}
		s.Progress[i] = progressAt(pl, p.Workload, next, in.Now)
		s.Progress[i].Opened, s.Progress[i].Routed = v.by, p.Routed
		if v.by != "" {
			s.Analyses = acceptedBy(s.Analyses, p.Workload, v.by)
		}
		moved = append(moved, stepText(p, s.Progress[i], v.by))
	}
	d := Decision{State: s, Waiting: strings.Join(waits, "; "), Requeue: due}
	if len(moved) > 0 {
		d.State.Phase, d.State.Reason = phaseOf(in.Head.Render, s.Progress), ""
		d.Subject = s.App + " " + strings.Join(moved, ", ")
		d.Ask = askEndpoints(in, needs)
		return d
	}
	return rest(in, d, paused && len(waits) > 0, broken)
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
// waits for people or for pods, and whether it has waited too long.
// One that cannot go on by waiting has waited long enough at once.
func rest(in Input, d Decision, paused bool, broken string) Decision {
	phase, reason := rollout.Progressing, ""
	if broken != "" {
		phase, reason = rollout.Stalled, broken
	} else if paused {
		phase = rollout.Paused
	} else if late, ok := overdue(in); ok {
		phase, reason = rollout.Stalled, late.reason()
	} else if !late.at.IsZero() {
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
	if complete(in, in.Head.Render) && in.Answers.IsSettled() {
		stable := *s.Release
		stable.Since, stable.Fast = rollout.Second(in.Now), false
		s.Pong = swapped(in)
		s.Stable, s.Release, s.Progress, s.Analyses = &stable, nil, nil, nil
		s.Phase, s.Reason, s.Verified = rollout.Healthy, "", remember(s.Verified, stable.Hash)
		return Decision{State: s, Subject: fmt.Sprintf("%s healthy at %s (%s by %s)", s.App, stable.Hash, rollout.ShortID(stable.Commit), stable.Author)}
	}
	phase := rollout.Promoting
	if s.Stable == nil {
		phase = rollout.Progressing
	}
	d := Decision{State: s, Waiting: "all pods to be of the new version and available"}
	late, isLate := overdue(in)
	switch {
	case isLate && s.Stable == nil:
		phase, d.State.Reason = rollout.Stalled, late.reason()
	case isLate:
		d.State.Reason = late.reason() // Promoting stays the phase: it is what the objects follow from
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
	return slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool { return !r.Current && r.Hash != live.Hash && r.Pods > 0 })
}

func soonest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
