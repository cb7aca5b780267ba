package strategies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// RequestedAbort returns the text of a break-glass annotation that aborts the release in flight, or "".
func RequestedAbort(in Input) string {
	in.State = workloads.Reopened(in.State)
	for _, w := range requestWorkloads(in) {
		if b, err := rollout.ParseBreakGlass(in.Observed.Workloads[w].BreakGlass); err == nil && aborts(in, w, b) {
			return b.Text()
		}
	}
	return ""
}

// aborts reports whether a request names this attempt of the release. A request may name the stable hash instead,
// because some steps apply the stable template to the workload.
func aborts(in Input, w rollout.Workload, b rollout.BreakGlass) bool {
	r, stable := in.State.Release, in.State.Stable
	return r != nil && stable != nil && b.Serial >= r.Serial && b.Serial <= in.State.Serial &&
		(b.Release == r.Hash || b.Release == r.Templates[w] || b.Release == stable.Templates[w])
}

func requestWorkloads(in Input) []rollout.Workload {
	all := slices.SortedFunc(maps.Keys(in.Observed.Workloads), rollout.Workload.Compare)
	return slices.DeleteFunc(all, func(w rollout.Workload) bool { return in.Observed.Workloads[w].BreakGlass == "" })
}

// IsRolledBack reports whether all pods have the stable version after a rollback.
func IsRolledBack(in Input, d Decision) bool {
	was := cmp.Or(in.Pending, &Decision{State: in.State}).State
	if was.Phase != rollout.Aborting || was.Source != d.State.Source || d.State.Phase != rollout.Aborting {
		return false // the observation precedes the rollback
	}
	in.State = d.State
	texts, _ := rollingBack(in.prepared())
	return len(texts) == 0
}

// AbortRequest is one workload's value of rollout.AnnotationBreakGlass.
type AbortRequest struct {
	Workload rollout.Workload
	Value    string
}

const requestStays = time.Hour

// FinishedRequests returns the requests to remove: their rollback is recorded, or they are old and abort nothing.
// Malformed requests, and requests with a higher serial than State's, stay.
func FinishedRequests(in Input) (spent []AbortRequest) {
	if in.Pending != nil || in.Handed != nil {
		return nil
	}
	in.State = workloads.Reopened(in.State)
	isOver := in.State.Phase == rollout.Aborting || in.State.Release == nil
	for _, w := range requestWorkloads(in) {
		value := in.Observed.Workloads[w].BreakGlass
		b, err := rollout.ParseBreakGlass(value)
		isRecorded := func(r rollout.Rejection) bool { return r.Hash == b.Release || r.Reason == b.Text() }
		isDone := slices.ContainsFunc(in.State.Rejected, isRecorded) || in.Now.After(b.At.Add(requestStays))
		if err == nil && b.Serial <= in.State.Serial && (isOver || !aborts(in, w, b)) && isDone {
			spent = append(spent, AbortRequest{w, value})
		}
	}
	return spent
}

// RequestWarnings returns a warning for each request: the rollback is not recorded yet, or the request has no effect.
func RequestWarnings(in Input) (warnings []string) {
	in.State = workloads.Reopened(in.State)
	spent := FinishedRequests(in)
	for _, w := range requestWorkloads(in) {
		value := in.Observed.Workloads[w].BreakGlass
		b, err := rollout.ParseBreakGlass(value)
		why := fmt.Sprintf("names release %s at serial %d, but this attempt is not in flight", b.Release, b.Serial)
		switch isSpent := slices.Contains(spent, AbortRequest{w, value}); {
		case err != nil:
			why = err.Error()
		case isSpent || aborts(in, w, b):
			warnings = append(warnings, b.Text()+"; the record is pushed when Git answers")
			continue
		case in.State.Stable == nil:
			why = "has no effect on a first deployment: there is no stable version to go back to"
		}
		warnings = append(warnings, fmt.Sprintf("%s: annotation %s %s; the annotation is ignored, and can be removed",
			w.Title(), rollout.AnnotationBreakGlass, why))
	}
	return warnings
}
