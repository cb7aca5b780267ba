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
)

func waitForPods(in Input, m workloads.Staged) verdict {
	want := m.Kind().Reached(m, m.Want())
	ready := plan.MinReady(m.Spec)
	routes := m.NeedsRouting()
	if routes {
		ready = max(ready, workloads.Learnt(m.Routing))
	}
	serving, needed := m.Fresh.Serving(in.Now, ready), enough(m, want.Canary)
	switch {
	case !m.Exists:
		return verdict{text: m.Workload.Title() + " to exist"}
	case serving < needed:
		text := fmt.Sprintf("pods of the new version: %d of %d serve", serving, want.Canary)
		if needed < want.Canary {
			text += fmt.Sprintf(", %d must", needed)
		}
		v := verdict{text: withProblem(text, m.Problem())}
		v.due = workloads.ServesNext(in.Now, ready, m.Fresh)
		return v
	case m.N > 0 && routes && m.Live.Synced:
		return waitForEndpoints(in, m)
	case (m.Spec.Scaling == rollout.InPlace || m.IsDynamic()) && m.Stable.Desired > want.Stable:
		return toGo("old", m.Stable.Desired-want.Stable, m.Stable)
	case m.Fresh.Desired > want.Canary:
		return toGo("new", m.Fresh.Desired-want.Canary, m.Fresh)
	case m.Stable.Desired < want.Stable && m.Stable.Hash != "":
		return verdict{text: fmt.Sprintf("pods of the old version: %d of %d are back", m.Stable.Desired, want.Stable)}
	case !m.Live.Synced:
		return verdict{text: "the " + m.Workload.Ref().Kind + " controller"}
	}
	return verdict{done: true}
}

// enough returns how many of a step's pods must be available: without replicaProgressThreshold, all. Otherwise, it is
// the maximum of the threshold, 1 and the weight's share of N-maxUnavailable. A step with N pods counts as weight 100.
func enough(m workloads.Staged, pods int) int {
	if m.Spec.Canary == nil || m.Spec.Canary.ReplicaProgressThreshold == nil {
		return pods
	}
	t := m.Spec.Canary.ReplicaProgressThreshold
	share := rollout.Amount{Value: t.Value, Percent: t.Type == "Percent"}.RoundUp(pods)
	least := available(m.Spec, m.Live, m.N)
	if pods < m.N {
		least = (least*m.Stage().Weight + m.Full() - 1) / m.Full()
	}
	return min(pods, max(1, share, least))
}

func withProblem(text, problem string) string {
	if problem == "" {
		return text
	}
	return text + " (" + problem + ")"
}

func toGo(version string, more int, r rollout.Revision) verdict {
	return verdict{text: fmt.Sprintf("pods of the %s version: %d of %d must still be removed", version, more, r.Desired)}
}

func waitForEndpoints(in Input, m workloads.Staged) verdict {
	for _, need := range needsOf(in, m) {
		if serves, known := in.Answers.Endpoints[need]; known && !serves {
			return verdict{text: "ready endpoints of Service " + need.Service.Name, due: in.Now.Add(time.Second)}
		}
	}
	return verdict{route: true}
}

func waitForPeople(in Input, m workloads.Staged) verdict {
	w, _ := m.Stage().Wait.(plan.PromotionWait)
	v := waitForPromotion(in, m)
	if v.done || w.Timeout == 0 {
		return v
	}
	v.due = m.Entered.Add(w.Timeout)
	if w.OnTimeout == rollout.TimeoutPromote && !in.Now.Before(v.due) {
		return verdict{done: true, by: fmt.Sprintf("its timeout of %s", w.Timeout)}
	}
	v.text += fmt.Sprintf(", until %s (then: %s)", v.due.Format(time.RFC3339), w.OnTimeout)
	return v
}

func waitForPromotion(in Input, m workloads.Staged) verdict {
	release := in.State.Release
	switch {
	case release.Fast:
		return verdict{done: true}
	case isOpen(m, in):
		return verdict{done: true, by: promoter(in)}
	}
	return verdict{paused: true, text: fmt.Sprintf("promotion of %s at step %d/%d", release.Hash, m.Step+1, m.Of)}
}

func promoter(in Input) string {
	if in.Promotion == nil {
		return "nobody"
	}
	return cmp.Or(in.Promotion.Author, "a promotion file")
}

func timedOut(in Input) string {
	for _, m := range stagedIn(in) {
		w, _ := m.Stage().Wait.(plan.PromotionWait)
		late := w.Timeout > 0 && w.OnTimeout == rollout.TimeoutAbort && !in.Now.Before(m.Entered.Add(w.Timeout))
		kept := m.Suspended || isSuspended(m) || holder(in, in.State.Release.Hash, m.Spec.Paused) != ""
		if late && !kept && in.State.Stable != nil && !waitForPromotion(in, m).done {
			return fmt.Sprintf("no promotion within %s at step %d/%d", w.Timeout, m.Step+1, m.Of)
		}
	}
	return ""
}

func waitForTime(w plan.TimerWait, in Input, m workloads.Staged) verdict {
	if v := waitForPromotion(in, m); v.done {
		return v
	}
	due := w.End(m.Entered)
	if due.IsZero() { // package render refuses a schedule without a next time
		return verdict{paused: true, text: "a promotion: " + m.Stage().Text + " never comes"}
	}
	if _, lacks := lacksPods(m, in.Now); lacks {
		return verdict{text: withProblem("a pod of the new version to serve", m.Problem())}
	}
	if m.Fresh.Ready() > 0 && m.Want().Canary > 0 {
		if anew := m.Fresh.ReadySince[0].Add(w.Duration); anew.After(due) { // no pod has been ready for the whole pause
			due = rollout.Soonest(anew, due.Add(w.Duration)) // at most twice the duration
		}
	}
	return waitUntil(in, m, due)
}

// recordedSoon is a duration. Only a longer push delays a timed pause.
const recordedSoon = 5 * time.Second

// sinceHanded returns the start of the next stage, normally now. If in.Handed began the same timed pause at most
// recordedSoon ago, sinceHanded returns the earlier start.
func (in Input) sinceHanded(p *plan.Compiled, next rollout.Progress) time.Time {
	s, _ := p.At(next.Step)
	w, timed := s.Wait.(plan.TimerWait)
	if !timed || w.Until != "" || in.Handed == nil || in.Handed.Release == nil || in.State.Release == nil ||
		in.Handed.Release.Hash != in.State.Release.Hash {
		return next.Entered
	}
	for _, was := range in.Handed.Progress {
		waited := next.Entered.Sub(was.Entered)
		same := was.Workload == next.Workload && was.Step == next.Step && was.Plan == next.Plan
		if same && waited > 0 && waited <= recordedSoon {
			return was.Entered
		}
	}
	return next.Entered
}

// lacksPods reports whether a timed pause is over without a ready new pod, and since when.
func lacksPods(m workloads.Staged, now time.Time) (since time.Time, lacks bool) {
	w, is := m.Stage().Wait.(plan.TimerWait)
	if !is || m.N == 0 || m.Want().Canary == 0 || m.Fresh.Ready() > 0 {
		return since, false
	}
	since = w.End(m.Entered)
	return since, !since.IsZero() && !now.Before(since)
}

func waitUntil(in Input, m workloads.Staged, due time.Time) verdict {
	if !in.Now.Before(due) {
		return verdict{done: true}
	}
	text := strings.TrimPrefix(m.Stage().Text, "wait for ")
	return verdict{paused: true, due: due, text: fmt.Sprintf("%s, until %s", text, due.Format(time.RFC3339))}
}

// waitForAnalysis does not wait after an inconclusive run, because gateInconclusive waits then.
func waitForAnalysis(w plan.AnalysisWait, in Input, m workloads.Staged) verdict {
	if in.State.Release.Fast {
		return verdict{done: true}
	}
	name := runName(m)
	run, has := rollout.Find(Runs(in), func(r rollout.AnalysisRun) bool { return r.Name == name })
	lacks := func(metric rollout.Metric) bool { return asksAbout(metric, "Latest") && m.Fresh.Pin.Value == "" }
	switch {
	case run.Phase == rollout.AnalysisSuccessful:
		return verdict{done: true}
	case run.Phase == rollout.AnalysisInconclusive:
		return verdict{done: true, by: run.Accepted}
	case isOpen(m, in):
		return verdict{done: true, by: promoter(in)}
	case !has:
		return verdict{text: "analysis " + name + " to start"}
	case slices.ContainsFunc(w.Metrics, lacks):
		return withoutPods(m, "analysis "+name)
	}
	return verdict{text: fmt.Sprintf("analysis %s: %s", name, inWords(run))}
}

// withoutPods waits for a new pod. If no earlier step starts a pod, the wait cannot end.
func withoutPods(m workloads.Staged, who string) verdict {
	v := verdict{text: "a pod of the new version for " + who}
	if m.Want().Canary == 0 && m.N > 0 {
		v.broken = who + " asks about pods of the new version, and no earlier step starts such a pod; " +
			"put a setWeight or a setCanaryScale before this step"
	}
	return v
}

func waitForExperiment(w plan.ExperimentWait, in Input, m workloads.Staged) verdict {
	v := waitForResults(w, in, m)
	if shares := m.Routed != nil && m.Routed.Shares; mayShare(m) && shares == v.done {
		return verdict{route: true, shares: !shares}
	}
	return v
}

func waitForResults(w plan.ExperimentWait, in Input, m workloads.Staged) verdict {
	if v := waitForPromotion(in, m); v.done {
		return v
	}
	if m.Available == nil {
		return waitForExperimentPods(w, in, m)
	}
	var waits []string
	var due time.Time
	if d := w.Duration; d != nil {
		if due = m.Available.Add(*d); in.Now.Before(due) {
			waits = append(waits, "the experiment, until "+due.Format(time.RFC3339))
		}
	}
	runs := Runs(in)
	for _, a := range w.Analyses {
		name := runName(m) + "/" + a.Name
		run, has := rollout.Find(runs, func(r rollout.AnalysisRun) bool { return r.Name == name })
		switch {
		case run.Phase == rollout.AnalysisInconclusive:
			return verdict{done: true, by: run.Accepted}
		case !has && a.Required:
			waits = append(waits, "analysis "+name+" to start")
		case a.Required && run.Phase != rollout.AnalysisSuccessful:
			waits = append(waits, fmt.Sprintf("analysis %s: %s", name, inWords(run)))
		}
	}
	if len(waits) == 0 {
		return verdict{done: true}
	}
	return verdict{text: strings.Join(waits, "; "), due: laterOnly(due, in.Now)}
}

func waitForExperimentPods(w plan.ExperimentWait, in Input, m workloads.Staged) verdict {
	var waits []string
	var due time.Time
	for _, t := range podsOf(in, m, w.Experiment) {
		if t.available() {
			continue
		}
		text := fmt.Sprintf("pods of the experiment's %s: %d of %d available", t.Name, t.serving, t.Replicas)
		waits = append(waits, withProblem(text, t.live.Problem))
		due = rollout.Soonest(due, workloads.ServesNext(in.Now, plan.MinReady(m.Spec), t.live))
	}
	if len(waits) == 0 {
		return verdict{begins: true}
	}
	if late, _ := lateExperiment(in); !late.at.IsZero() {
		due = rollout.Soonest(due, laterOnly(late.at, in.Now))
	}
	return verdict{text: strings.Join(waits, "; "), due: due}
}
