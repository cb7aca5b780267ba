package strategies

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// brokenGlass returns why a user aborted the release in flight without Git, or "".
func brokenGlass(in Input) string {
	for _, w := range glassWorkloads(in) {
		if b, err := rollout.ParseBreakGlass(in.Observed.Workloads[w].BreakGlass); err == nil && aborts(in, w, b) {
			return b.Text()
		}
	}
	return ""
}

// aborts reports whether a request concerns the release in flight. A request for another version or for an earlier
// attempt is void.
func aborts(in Input, w rollout.Workload, b rollout.BreakGlass) bool {
	r := in.State.Release
	return r != nil && b.Serial >= r.Serial && b.Serial <= in.State.Serial &&
		(b.Release == r.Hash || b.Release == r.Templates[w])
}

// glassWorkloads returns the workloads with a request, in order.
func glassWorkloads(in Input) (found []rollout.Workload) {
	for w, live := range in.Observed.Workloads {
		if live.BreakGlass != "" {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, rollout.Workload.Compare)
	return found
}

// GlassAnnotation is the value of rollout.AnnotationBreakGlass of one workload.
type GlassAnnotation struct {
	Workload rollout.Workload
	Value    string
}

// SpentGlass returns the requests whose rollback Git has. They are removed from the cluster.
func SpentGlass(in Input) (spent []GlassAnnotation) {
	if in.Pending != nil || in.Handed != nil {
		return nil
	}
	for _, w := range glassWorkloads(in) {
		value := in.Observed.Workloads[w].BreakGlass
		b, err := rollout.ParseBreakGlass(value)
		isBegun := in.State.Phase == rollout.Aborting || in.State.Release == nil
		isRecorded := func(r rollout.Rejection) bool { return r.Hash == b.Release || r.Reason == b.Text() }
		if err == nil && (isBegun || !aborts(in, w, b)) && slices.ContainsFunc(in.State.Rejected, isRecorded) {
			spent = append(spent, GlassAnnotation{w, value})
		}
	}
	return spent
}

// GlassWarnings returns a text for each request in the cluster. Git does not have its rollback yet, or it is void.
func GlassWarnings(in Input) (warnings []string) {
	spent := SpentGlass(in)
	for _, w := range glassWorkloads(in) {
		value := in.Observed.Workloads[w].BreakGlass
		b, err := rollout.ParseBreakGlass(value)
		why := fmt.Sprintf("names release %s at serial %d, which is not in flight", b.Release, b.Serial)
		switch isSpent := slices.Contains(spent, GlassAnnotation{w, value}); {
		case err != nil:
			why = err.Error()
		case isSpent || aborts(in, w, b):
			warnings = append(warnings, b.Text()+"; Git gets the record when it answers")
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: annotation %s %s; it is ignored, and can be removed",
			w.Title(), rollout.AnnotationBreakGlass, why))
	}
	return warnings
}
