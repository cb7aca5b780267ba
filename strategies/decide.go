package strategies

import (
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Input is everything that a decision about one app depends on.
type Input struct {
	Now       time.Time
	App       rollout.App
	Head      Head                  // what the users' branch asks for
	Source    *rollout.Render       // the render at State.Source; nil if it cannot be had
	State     rollout.State         // the record; the zero value if there is none
	Pending   *Decision             // a retreat to State that is applied and that Git has not recorded yet; nil if it has
	Promotion *rollout.Promotion    // nil if there is no promotion file
	Observed  rollout.Observed      //
	Runs      []rollout.AnalysisRun // State.Analyses with what was measured since they were recorded
	Calendar  rollout.Calendar      // when releases of the app may advance
	Applied   time.Time             // since when the cluster holds what Routing says; zero if that was not looked at
	Answers   Answers               // to what earlier decisions on this input have asked
}

// Head is the users' branch as far as one app is concerned.
type Head struct {
	Commit rollout.Commit
	Render *rollout.Render // nil if Err is set
	Err    error           // why the app cannot be rendered, or its promotion file not be read
}

// Decision is what to do next.
type Decision struct {
	State   rollout.State
	Subject string    // what changed, in words, for the commit subject; "" if nothing did
	Retreat bool      // apply first, record afterwards
	Requeue time.Time // when a timer makes the next decision due; zero if none does
	Waiting string    // what the app waits for, for people; "" if nothing
	Measure []Measure // what is to be measured now
	Stale   bool      // the cluster carries a newer record: nothing may be applied, and State keeps its Serial

	// Ask is what has to be answered first; nil if nothing. Until then the rest is
	// what would be decided if nothing speaks against it, for people to look at.
	Ask *Ask
}

// Decide returns the next state of one app: at most one transition further than
// the state it was given. Whoever carries it out answers its questions first:
//
//	for d.Ask != nil { in = answer(in, d.Ask); d = Decide(in) }
//
//	                 ┌────────────── reverted, aborted, superseded ─────────────┐
//	Healthy ─push→ Progressing ⇄ Paused ─last step→ Promoting ─complete→ Healthy │
//	   ↑               ⇅ Stalled                                                 ↓
//	   └───────── complete, Git agrees ─────────── Aborting ─complete, Git does not→ Degraded
func Decide(in Input) Decision {
	was := in.State
	if err := in.HeadErr(); err != nil {
		in.Head.Render, in.Head.Err = nil, err
	}
	d := decide(in)
	if p := in.Pending; p != nil && !d.Stale { // what follows a retreat waits until that is recorded
		if !d.Retreat {
			return *p
		}
		d.Subject = p.Subject
	}
	if h := d.State.Held; h != nil && was.Held != nil && h.Reason == was.Held.Reason && h.Message == was.Held.Message {
		d.State.Held = was.Held // the same trouble in a later commit is not a transition
	}
	d = withAnalyses(in, d)
	switch same := d.State.Equal(&was); {
	case same:
		d.Subject = ""
	case d.Subject == "":
		d.Subject = d.State.App + " goes on"
	}
	return asked(in, d)
}

func decide(in Input) Decision {
	if live := in.Observed.Serial(); in.State.Phase != "" && live > in.State.Serial {
		return stale(in.State, live)
	}
	if in.Head.Err != nil {
		return decideHeld(in)
	}
	in.State.App, in.State.Path = in.App.Name, in.App.Path
	in.State.Held = nil // whatever it was is over, or is found again
	switch {
	case in.State.Phase == "" || in.State.Phase == rollout.Pending:
		return decideFirst(in)
	case in.State.Phase == rollout.Aborting:
		return decideAborting(in)
	case in.State.Release != nil:
		return decideInFlight(in)
	default:
		return decideAtRest(in)
	}
}

// decideHeld leaves the app as it is because what Git asks for cannot be
// understood. What runs is still watched: an abort that is readable is obeyed,
// and a retreat that has begun goes on.
func decideHeld(in Input) Decision {
	s := in.State
	if s.Phase == "" {
		s.Phase = rollout.Pending
	}
	s.App, s.Path = orElse(s.App, in.App.Name), orElse(s.Path, in.App.Path)
	if s.Phase == rollout.Aborting {
		if done, ok := finishRetreat(in); ok {
			return done
		}
	}
	if reason, ok := mustRetreat(in); ok && s.Stable != nil {
		return retreat(in, cause{reason: reason, to: s.Stable.Commit, reject: true})
	}
	d := hold(s, "InvalidInput", in.Head.Err.Error(), in.Head.Commit.ID)
	d.Requeue = heldUntil(in)
	return d
}

// heldUntil is when an app whose head cannot be read is to be looked at again:
// what runs is still watched. It is zero if only a push changes anything.
func heldUntil(in Input) time.Time {
	s := in.State
	switch {
	case s.Release == nil || s.Stable == nil:
		return time.Time{}
	case s.Phase == rollout.Aborting:
		return laterOnly(s.Retreat.Drain, in.Now)
	}
	var next time.Time
	if late, _ := overdue(in); late.spec.ProgressDeadlineAbort {
		next = laterOnly(late.at, in.Now)
	}
	if late, _ := lateExperiment(in); !late.at.IsZero() {
		next = soonest(next, laterOnly(late.at, in.Now))
	}
	return next
}

// RolledBack is why an app is held whose record is older than the cluster's.
const RolledBack = "StateRolledBack"

// stale holds an app whose record is older than what the cluster was last
// written from: the state branch was rolled back, or another reconciler's push
// has not been seen yet. To apply the older record would undo a transition, or
// undo a retreat.
func stale(s rollout.State, live int) Decision {
	d := hold(s, RolledBack, fmt.Sprintf(
		"%s has serial %d, and the cluster was written from serial %d: the state branch was rolled back; push the newer commit again, or go on from the older one: gitrollout state repair %s",
		rollout.StatePath(s.App), s.Serial, live, s.App), "")
	d.Stale = true
	return d
}

// hold returns the state with a reason for which nothing moves.
func hold(s rollout.State, reason, message, commit string) Decision {
	s.Held = &rollout.Held{Reason: reason, Message: message, Commit: commit}
	return Decision{State: s, Waiting: message, Subject: fmt.Sprintf("%s held: %s", s.App, message)}
}

// decideFirst starts an app that has no record: a first deployment, or the
// adoption of what runs already.
func decideFirst(in Input) Decision {
	d := first(in)
	d.Ask = askAdoptable(in)
	return d
}

func first(in Input) Decision {
	s, head := in.State, in.Head.Render
	var strange, moving []rollout.Workload
	running := 0
	for _, spec := range head.Specs {
		live, exists := in.Observed.Workloads[spec.Workload]
		if !exists {
			continue
		}
		running++
		template := head.Templates[spec.Workload]
		switch {
		case live.Hash != template && !in.Answers.Adoptable[spec.Workload]:
			strange = append(strange, spec.Workload)
		case halfway(live, template):
			moving = append(moving, spec.Workload)
		}
	}
	release := newRelease(in)
	approved := in.Promotion.OpensAll(release.Hash)
	switch {
	case len(strange) > 0 && !approved:
		msg := fmt.Sprintf("Deployment %s already runs a template that differs from Git, and no release is on record; "+
			"commit what runs first (it is adopted without a restart), or replace it at once with a promotion file: release: %s, through: full",
			strange[0], release.Hash)
		s.Phase = rollout.Pending
		return hold(s, "Adoption", msg, in.Head.Commit.ID)
	case len(moving) > 0 && !approved:
		msg := fmt.Sprintf("Deployment %s is in the middle of a release, and no release is on record; "+
			"restore the state branch, or finish the release at once with a promotion file: release: %s, through: full", moving[0], release.Hash)
		s.Phase = rollout.Pending
		return hold(s, "Adoption", msg, in.Head.Commit.ID)
	case running > 0 && len(strange)+len(moving) == 0:
		s.Phase, s.Source, s.Stable, s.Verified = rollout.Healthy, in.Head.Commit.ID, &release, remember(nil, release.Hash)
		return Decision{State: s, Subject: fmt.Sprintf("%s adopted at %s", s.App, rollout.ShortID(release.Commit))}
	}
	if len(head.Specs) > 0 {
		if d, shut := closed(in, "release "+string(release.Hash)); shut {
			return d
		}
	}
	s.Source = in.Head.Commit.ID
	if len(head.Specs) == 0 {
		s.Phase, s.Reason = rollout.Healthy, ""
		return Decision{State: s, Subject: fmt.Sprintf("%s applied at %s", s.App, rollout.ShortID(s.Source))}
	}
	s.Phase, s.Release, s.Reason = rollout.Progressing, &release, "first deployment: no stable version to protect, so no steps"
	return Decision{State: s, Subject: fmt.Sprintf("%s first deployment of %s", s.App, release.Hash)}
}

// halfway reports whether pods of another release than the template's run.
func halfway(live rollout.ObservedWorkload, template rollout.Hash) bool {
	return slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool {
		return r.Hash != "" && r.Hash != template && r.Desired > 0
	})
}

// decideAtRest handles an app without a release in flight.
func decideAtRest(in Input) Decision {
	s, head := in.State, in.Head.Render
	target := head.Release()
	stable := rollout.Hash("")
	if s.Stable != nil {
		stable = s.Stable.Hash
	}
	// A workload of another name is a new one, though its hash be the same.
	if target == "" || (target == stable && !noneRuns(in)) {
		return follow(in)
	}
	if s.Stable == nil || noneRuns(in) {
		if d, shut := closed(in, "release "+string(target)); shut {
			return d
		}
		return startFirst(in)
	}
	if rejection, ok := s.IsRejected(target); ok && !retried(in.Promotion, rejection) {
		return degraded(in, rejection)
	}
	if d, shut := closed(in, "release "+string(target)); shut && !isFast(in, target) {
		return d
	}
	return startRelease(in, "")
}

// noneRuns reports that no staged workload of the head has a stable template:
// all are new to the app, so there is nothing to move in stages.
func noneRuns(in Input) bool {
	for _, spec := range in.Head.Render.Specs {
		if in.State.StableHash(spec.Workload) != "" {
			return false
		}
	}
	return true
}

// startFirst deploys a first release of an app that has a record but no stable
// version of what is staged now.
func startFirst(in Input) Decision {
	s := in.State
	release := newRelease(in)
	s.Stable, s.Release, s.Progress, s.Source = nil, &release, nil, in.Head.Commit.ID
	s.Phase, s.Reason = rollout.Progressing, "first deployment: no stable version to protect, so no steps"
	return Decision{State: s, Subject: fmt.Sprintf("%s first deployment of %s", s.App, release.Hash)}
}

// follow keeps an app that is at its stable version up with everything else
// that its render says: replicas, Services, configuration.
func follow(in Input) Decision {
	s := in.State
	was := s.Phase
	s.Phase, s.Reason, s.Release, s.Progress, s.Retreat = rollout.Healthy, "", nil, nil, nil
	if s.Stable != nil && in.Head.Render.Release() == "" {
		s.Stable = nil // the Rollout documents are gone: plain Deployments from now on
	}
	if in.Source == nil || in.Source.Digest != in.Head.Render.Digest {
		s.Source = in.Head.Commit.ID
	}
	if was != rollout.Healthy {
		return Decision{State: s, Subject: fmt.Sprintf("%s healthy: Git agrees with what serves", s.App)}
	}
	if s.Source == in.State.Source {
		return Decision{State: s}
	}
	return Decision{State: s, Subject: fmt.Sprintf("%s follows %s", s.App, rollout.ShortID(s.Source))}
}

// degraded says that Git asks for what was rejected. Stable serves meanwhile.
func degraded(in Input, rejection rollout.Rejection) Decision {
	s := in.State
	was := s.Phase
	s.Phase, s.Release, s.Progress, s.Retreat = rollout.Degraded, nil, nil, nil
	if in.Source == nil || in.Source.Release() != s.Stable.Hash {
		s.Source = s.Stable.Commit
	}
	s.Reason = fmt.Sprintf("Git asks for %s, which was rejected: %s", rejection.Hash, rejection.Reason)
	d := Decision{State: s, Waiting: "a revert of " + rollout.ShortID(rejection.Commit) + ", a new version, or decision: retry"}
	if was != rollout.Degraded {
		d.Subject = fmt.Sprintf("%s degraded: %s was rejected, %s serves", s.App, rejection.Hash, s.Stable.Hash)
	}
	return d
}

// retried reports whether somebody asked to try a rejected hash again after it
// was rejected.
func retried(p *rollout.Promotion, rejection rollout.Rejection) bool {
	return p.Says(rollout.Retry, rejection.Hash) && p.Digest != rejection.Promotion
}

// newRelease describes the head as a release that starts now.
func newRelease(in Input) rollout.Release {
	head := in.Head.Render
	return rollout.Release{
		Commit: in.Head.Commit.ID, Hash: head.Release(), Author: in.Head.Commit.Author,
		Subject: in.Head.Commit.Subject, Since: rollout.Second(in.Now), Templates: head.Staged(),
	}
}

// startRelease puts the head at its first step. A hash that served well before
// is rolled out without pauses and weights; so is one with no steps and one
// whose workloads have no pods to protect.
func startRelease(in Input, why string) Decision {
	s := in.State
	release := newRelease(in)
	release.Fast = isFast(in, release.Hash)
	s.Rejected = slices.DeleteFunc(slices.Clone(s.Rejected), func(r rollout.Rejection) bool { return r.Hash == release.Hash })
	if in.Source != nil && in.Source.Release() == s.Stable.Hash {
		stable := *s.Stable
		stable.Commit = s.Source // the newest that serves with it: what an abort goes back to
		s.Stable = &stable
	}
	s.Release, s.Retreat, s.Source, s.Reason = &release, nil, in.Head.Commit.ID, why
	s.Progress, s.Analyses = firstProgress(in, release), nil
	s.Phase = phaseOf(in.Head.Render, s.Progress)
	subject := fmt.Sprintf("%s release %s by %s", s.App, release.Hash, release.Author)
	switch {
	case release.Fast:
		subject += ", verified before: no pauses"
	case len(s.Progress) == 1 && s.Progress[0].Step < s.Progress[0].Of:
		first := s.Progress[0]
		subject += fmt.Sprintf(", step 1/%d %s", first.Of, first.Name)
	}
	return Decision{State: s, Subject: subject}
}

// firstProgress is the first step of each workload whose template changes. The
// others, and those that are new to the app, have nothing to stage.
func firstProgress(in Input, release rollout.Release) []rollout.Progress {
	var all []rollout.Progress
	for _, spec := range in.Head.Render.Specs {
		stable := in.State.StableHash(spec.Workload)
		if stable == "" || stable == release.Templates[spec.Workload] {
			continue
		}
		p := planOf(spec)
		step := 0
		switch live := in.Observed.Workloads[spec.Workload]; {
		case replicas(spec, live) == 0:
			step = len(p.stages)
		case release.Fast && spec.Canary != nil:
			step = len(spec.Canary.Steps)
		}
		all = append(all, progressAt(p, spec.Workload, step, in.Now))
	}
	return all
}

func progressAt(p plan, w rollout.Workload, step int, now time.Time) rollout.Progress {
	pr := rollout.Progress{Workload: w, Step: step, Of: len(p.stages), Plan: p.digest(), Entered: rollout.NextSecond(now)}
	if s, ok := p.at(step); ok {
		pr.Name, pr.Weight = s.text, s.weight
	} else {
		pr.Name, pr.Weight = "promote", 100
	}
	return pr
}

// phaseOf is the phase in which workloads that have just moved are: Promoting
// when all are through, Paused when those that are not wait for people or the
// clock.
func phaseOf(r *rollout.Render, all []rollout.Progress) rollout.Phase {
	phase := rollout.Promoting
	for _, pr := range all {
		spec, ok := r.Spec(pr.Workload)
		if !ok || pr.Step >= pr.Of {
			continue
		}
		if s, _ := planOf(spec).at(pr.Step); !s.wait.pauses() {
			return rollout.Progressing
		}
		phase = rollout.Paused
	}
	return phase
}

// isFast reports whether the hash is among the verified ones that each
// workload's rollbackWindow still covers. The stable hash itself is the first
// verified one and does not count.
func isFast(in Input, h rollout.Hash) bool {
	i := slices.Index(in.State.Verified, h)
	if i < 0 {
		return false
	}
	for _, spec := range in.Head.Render.Specs {
		if spec.RollbackWindow != nil && i > *spec.RollbackWindow {
			return false
		}
	}
	return true
}

// remember puts a hash at the head of a bounded list.
func remember(list []rollout.Hash, h rollout.Hash) []rollout.Hash {
	out := append([]rollout.Hash{h}, slices.DeleteFunc(slices.Clone(list), func(o rollout.Hash) bool { return o == h })...)
	return out[:min(len(out), rollout.MaxHistory)]
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
