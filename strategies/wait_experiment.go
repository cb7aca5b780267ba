package strategies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// waitForExperiment waits for the pods, then the duration and required analyses, or for a promotion.
func waitForExperiment(w plan.ExperimentWait, in Input, m workload) verdict {
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
		name := m.runName() + "/" + a.Name
		i := slices.IndexFunc(runs, func(r rollout.AnalysisRun) bool { return r.Name == name })
		switch {
		case i >= 0 && runs[i].Phase == rollout.AnalysisInconclusive:
			return verdict{done: true, by: runs[i].Accepted}
		case i < 0 && a.Required:
			waits = append(waits, "analysis "+name+" to start")
		case i >= 0 && a.Required && runs[i].Phase != rollout.AnalysisSuccessful:
			waits = append(waits, fmt.Sprintf("analysis %s: %s", name, inWords(runs[i])))
		}
	}
	if len(waits) == 0 {
		return verdict{done: true}
	}
	return verdict{text: strings.Join(waits, "; "), due: laterOnly(due, in.Now)}
}

// waitForExperimentPods waits until all pods of the experiment are available.
func waitForExperimentPods(w plan.ExperimentWait, in Input, m workload) verdict {
	var waits []string
	var due time.Time
	for _, t := range podsOf(in, m, w.Experiment) {
		if t.available() {
			continue
		}
		text := fmt.Sprintf("pods of the experiment's %s: %d of %d available", t.Name, t.serving, t.Replicas)
		if t.live.Problem != "" {
			text += " (" + t.live.Problem + ")"
		}
		waits = append(waits, text)
		due = rollout.Soonest(due, servesNext(in.Now, plan.MinReady(m.Spec), t.live))
	}
	if len(waits) == 0 {
		return verdict{begins: true}
	}
	if late, _ := lateExperiment(in); !late.at.IsZero() {
		due = rollout.Soonest(due, laterOnly(late.at, in.Now))
	}
	return verdict{text: strings.Join(waits, "; "), due: due}
}
