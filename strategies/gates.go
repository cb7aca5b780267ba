package strategies

import (
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// verdict says whether a step is done and, if not, what it waits for.
type verdict struct {
	done   bool
	by     string    // who opened the gate, "" if nobody had to
	text   string    // what it waits for
	paused bool      // it waits for people or the clock, not for pods
	due    time.Time // when the clock is through, zero if it is not the clock
	broken string    // why it will not be done by waiting, "" if it may
	route  bool      // the step's pods serve: its weight and routes are due
	begins bool      // the experiment's pods are available: its clock and its analyses are due
}

// gates are asked in this order, the first that is not done decides; windows are
// asked last. Each is a reason not to advance; none of them is asked before a
// retreat.
var gates = []func(Input, plan, rollout.Progress) verdict{
	gateHold,
	gateSettled,
	gateRouters,
	gateAnalysis,
	gateStep,
}

func verdictAt(in Input, p plan, pr rollout.Progress) verdict {
	by := ""
	for _, gate := range gates {
		v := gate(in, p, pr)
		if !v.done {
			return v
		}
		by = orElse(by, v.by)
	}
	if w := gateWindow(in, p, pr); !w.done {
		return w
	}
	return verdict{done: true, by: by}
}

// gateHold keeps a release where it is while its document or its promotion file
// says so.
func gateHold(in Input, p plan, _ rollout.Progress) verdict {
	if !userHolds(in, p.spec) {
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

// gateSettled keeps a release where it is until the cluster has accepted what
// the present step asks for.
func gateSettled(in Input, p plan, pr rollout.Progress) verdict {
	if in.Answers.IsSettled() {
		return verdict{done: true}
	}
	s, _ := p.at(pr.Step)
	return verdict{paused: s.wait.pauses(), text: "the cluster to accept the objects of " + pr.Name}
}

// gateStep asks the step itself.
func gateStep(in Input, p plan, pr rollout.Progress) verdict {
	s, ok := p.at(pr.Step)
	if !ok {
		return verdict{done: true}
	}
	switch s.wait {
	case waitGate:
		return gatePromotion(in, p, pr)
	case waitTimer:
		if v := gatePromotion(in, p, pr); v.done {
			return v
		}
		return gateTimer(in, pr, s)
	case waitDelay:
		return gateTimer(in, pr, s)
	case waitNothing, waitAnalysis: // its analysis was asked about before
		return verdict{done: true}
	case waitExperiment:
		return gateExperiment(in, p, pr, s)
	case waitPods:
		return gatePods(in, p, pr, s)
	default:
		return verdict{text: fmt.Sprintf("nothing that is known (step %d)", pr.Step)}
	}
}

func gatePromotion(in Input, p plan, pr rollout.Progress) verdict {
	release := in.State.Release
	if release.Fast {
		return verdict{done: true}
	}
	if in.Promotion.Opens(release.Hash, p.names(), pr.Step) {
		return verdict{done: true, by: promoter(in)}
	}
	v := verdict{paused: true, text: fmt.Sprintf("promotion of %s at step %d/%d", release.Hash, pr.Step+1, pr.Of)}
	if s, ok := p.at(pr.Step); ok && s.wait == waitGate && s.timeout > 0 {
		v.due = pr.Entered.Add(s.timeout)
		if s.onTimeout == rollout.TimeoutPromote && !in.Now.Before(v.due) {
			return verdict{done: true, by: fmt.Sprintf("its timeout of %s", s.timeout)}
		}
		v.text += fmt.Sprintf(", until %s (then: %s)", v.due.Format(time.RFC3339), s.onTimeout)
	}
	return v
}

func promoter(in Input) string { return orElse(in.Promotion.Author, "a promotion file") }

// gateTimer waits from the moment that the state records, so that neither a
// restart nor another machine starts the clock again. A clock that was set back
// makes the wait longer by as much, never shorter than asked.
func gateTimer(in Input, pr rollout.Progress, s stage) verdict {
	due := pr.Entered.Add(s.duration)
	if s.until != "" {
		moments, err := schedule.Parse(s.until, s.zone)
		if err == nil {
			due = moments.Next(pr.Entered)
		}
		if err != nil || due.IsZero() { // render refuses both
			return verdict{paused: true, text: "a promotion: " + s.text + " never comes"}
		}
	}
	if !in.Now.Before(due) {
		return verdict{done: true}
	}
	return verdict{paused: true, due: due, text: fmt.Sprintf("%s, until %s", strings.TrimPrefix(s.text, "wait for "), due.Format(time.RFC3339))}
}

// gatePods waits until the new version's pods have served for the user's
// minReadySeconds and the old ones are as few as the step asks for.
func gatePods(in Input, p plan, pr rollout.Progress, s stage) verdict {
	live, ok := in.Observed.Workloads[pr.Workload]
	if !ok {
		return verdict{text: "Deployment " + pr.Workload.String() + " to exist"}
	}
	n := replicas(p.spec, live)
	want := countsAt(p, pr.Step, n)
	canary, _ := live.Find(in.State.Release.Templates[pr.Workload])
	stable, _ := live.Find(in.State.StableHash(pr.Workload))
	ready := minReady(p.spec)
	if needsRouting(p, pr) {
		ready = max(ready, learnt(p.spec.Canary.Traffic))
	}
	serving := canary.Serving(in.Now, ready)
	if c := p.spec.Canary; n == 0 && c != nil && pr.Step < len(c.Steps) && s.weight > 0 {
		return verdict{text: "replicas: the workload has none"}
	}
	if serving < want.canary {
		v := verdict{text: fmt.Sprintf("pods of the new version: %d of %d serve", serving, want.canary)}
		if canary.Problem != "" {
			v.text += " (" + canary.Problem + ")"
		}
		v.due = servesNext(in.Now, ready, canary)
		return v
	}
	if n > 0 && needsRouting(p, pr) && live.Synced {
		return gateRoute(in, p, pr)
	}
	if (p.spec.Scaling == rollout.InPlace || isDynamic(p.spec)) && stable.Desired > want.stable {
		return verdict{text: fmt.Sprintf("pods of the old version: %d of %d have yet to go", stable.Desired-want.stable, stable.Desired)}
	}
	if !live.Synced {
		return verdict{text: "the Deployment controller"}
	}
	return verdict{done: true}
}

// servesNext is when the next ready pod will have been so for minReady, zero if
// all have.
func servesNext(now time.Time, minReady time.Duration, versions ...rollout.Revision) (due time.Time) {
	for _, v := range versions {
		for _, since := range v.ReadySince {
			if at := since.Add(minReady); at.After(now) {
				due = soonest(due, at)
			}
		}
	}
	return due
}

// deadline is a workload of the release that makes no progress.
type deadline struct {
	spec     rollout.Spec
	at       time.Time // when it is, or was, too late
	problem  string
	progress rollout.Progress
}

func (d deadline) reason() string {
	text := fmt.Sprintf("no progress for %ds at %s", d.spec.ProgressDeadlineSeconds, orElse(d.progress.Name, "first deployment"))
	if d.problem != "" {
		text += ": " + d.problem
	}
	return text
}

// overdue finds a workload whose pods have made no progress for longer than its
// deadline. Progress is entering a step and each new pod that becomes ready;
// pauses do not count, and neither does the time in which a workload waits for
// the others of its release. It returns the earliest deadline either way.
func overdue(in Input) (deadline, bool) {
	var first deadline
	for _, spec := range releaseSpecs(in) {
		live := in.Observed.Workloads[spec.Workload]
		pr, ok := in.State.ProgressOf(spec.Workload)
		if !ok && in.State.Stable != nil {
			continue // its template does not change: there is no progress to make
		}
		if !ok {
			pr = rollout.Progress{Workload: spec.Workload, Entered: in.State.Release.Since}
		}
		if s, ok := planOf(spec).at(pr.Step); ok && in.State.Stable != nil && (s.wait != waitPods || gatePods(in, planOf(spec), pr, s).done) {
			continue // it waits for people or the clock: a window, or somebody's hold
		}
		if pr.Step >= pr.Of && in.State.Phase != rollout.Promoting && in.State.Stable != nil {
			continue // it is through its steps and waits for the others
		}
		if in.State.Stable != nil && in.State.Phase == rollout.Promoting && live.Complete {
			continue
		}
		canary, _ := live.Find(in.State.Release.Templates[spec.Workload])
		since := pr.Entered
		if in.State.Phase == rollout.Promoting {
			since = promotedAt(in.State)
		}
		if n := canary.Ready(); n > 0 && canary.ReadySince[n-1].After(since) {
			since = canary.ReadySince[n-1]
		}
		at := since.Add(time.Duration(spec.ProgressDeadlineSeconds) * time.Second)
		if first.at.IsZero() || at.Before(first.at) {
			first = deadline{spec: spec, at: at, problem: canary.Problem, progress: pr}
		}
	}
	return first, !first.at.IsZero() && !in.Now.Before(first.at)
}

// promotedAt is when the last workload of a release was through its steps.
func promotedAt(s rollout.State) time.Time {
	var at time.Time
	for _, p := range s.Progress {
		if p.Entered.After(at) {
			at = p.Entered
		}
	}
	if len(s.Progress) == 0 { // it overtook the way back from another one
		return s.Release.Since
	}
	return at
}

// releaseSpecs are the specs that the release in flight follows: Git's newest,
// or those of the last commit that could be read.
func releaseSpecs(in Input) []rollout.Spec {
	switch {
	case in.Head.Render != nil && in.Head.Render.Release() == in.State.Release.Hash:
		return in.Head.Render.Specs
	case in.Source != nil:
		return in.Source.Specs
	default:
		return nil
	}
}

// Gate returns the step whose gate is shut, for the proposal that opens it: the
// furthest one if several workloads wait. It is false while no workload waits
// for a promotion.
func Gate(in Input) (step int, shut bool) {
	if in.State.Release == nil || in.State.Stable == nil || in.State.Held != nil || in.State.Phase == rollout.Aborting {
		return 0, false
	}
	for _, spec := range releaseSpecs(in) {
		pr, moving := in.State.ProgressOf(spec.Workload)
		if !moving {
			continue
		}
		s, ok := planOf(spec).at(pr.Step)
		waits := ok && s.wait == waitGate
		if _, is := inconclusive(in, pr.Workload); is {
			waits = true
		}
		if waits && !gatePromotion(in, planOf(spec), pr).done {
			step, shut = max(step, pr.Step), true
		}
	}
	return step, shut
}
