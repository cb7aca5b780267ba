package proxytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Results are the results of requests, in the order of their times.
type Results []Result

// Where returns the results that satisfy a condition.
func (rs Results) Where(holds func(Result) bool) Results {
	return slices.DeleteFunc(slices.Clone(rs), func(r Result) bool { return !holds(r) })
}

// Between returns the results whose scheduled time is at or after the time "from", and before the time "to".
func (rs Results) Between(from, to time.Time) Results {
	return rs.Where(func(r Result) bool { return !r.At.Before(from) && r.At.Before(to) })
}

// Failures returns the failed results.
func (rs Results) Failures() Results { return rs.Where(Result.Failed) }

// Unready returns the results of requests to pods that were not ready when the request came.
func (rs Results) Unready() Results {
	return rs.Where(func(r Result) bool { return r.Ready == "false" })
}

// Of counts the responses of a version.
func (rs Results) Of(version string) int {
	return len(rs.Where(func(r Result) bool { return r.Version == version }))
}

// Share returns a version's share of the responses, 0 without responses.
func (rs Results) Share(version string) float64 {
	if len(rs) == 0 {
		return 0
	}
	return float64(rs.Of(version)) / float64(len(rs))
}

// Versions counts the responses of each version.
func (rs Results) Versions() map[string]int {
	counts := map[string]int{}
	for _, r := range rs {
		counts[r.Version]++
	}
	return counts
}

// Pods returns the names of the pods that responded, sorted.
func (rs Results) Pods() []string {
	names := map[string]bool{}
	for _, r := range rs {
		if r.Pod != "" {
			names[r.Pod] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Latency returns a quantile of the latencies. For example, 0.5 is the median.
func (rs Results) Latency(part float64) time.Duration {
	if len(rs) == 0 {
		return 0
	}
	all := make([]time.Duration, len(rs))
	for i, r := range rs {
		all[i] = r.Latency
	}
	slices.Sort(all)
	return all[min(int(part*float64(len(all))), len(all)-1)]
}

// Until returns the time between `from` and the first `run` successive requests in which the version's number of
// responses fits the share, according to Within999.
func (rs Results) Until(from time.Time, version string, share float64, run int) (time.Duration, bool) {
	after := rs.Where(func(r Result) bool { return !r.At.Before(from) })
	for i := 0; i+run <= len(after); i++ {
		if Within999(after[i:i+run].Of(version), run, share) {
			return after[i].At.Sub(from), true
		}
	}
	return 0, false
}

// WantShare fails the test unless the version's number of responses fits the share, according to Within999.
func (rs Results) WantShare(tb testing.TB, what, version string, share float64) {
	tb.Helper()
	if k, n := rs.Of(version), len(rs); n == 0 || !Within999(k, n, share) {
		tb.Errorf("%s: %d of %d requests (%.2f %%) were answered by %s, want %.2f %%; all: %v",
			what, k, n, 100*rs.Share(version), version, 100*share, rs.Versions())
	}
}

// WantNoFailure fails the test if a request has failed or has reached an unready pod.
func (rs Results) WantNoFailure(tb testing.TB, what string) {
	tb.Helper()
	for problem, some := range map[string]Results{"failed": rs.Failures(), "came to a pod that was not ready": rs.Unready()} {
		if len(some) > 0 {
			tb.Errorf("%s: %d of %d requests %s:\n%s", what, len(some), len(rs), problem, some.head())
		}
	}
}

// head formats the first ten results, one per line.
func (rs Results) head() string {
	const few = 10
	lines := make([]string, 0, few+1)
	for _, r := range rs[:min(few, len(rs))] {
		lines = append(lines, "  "+r.String())
	}
	if len(rs) > few {
		lines = append(lines, fmt.Sprintf("  and %d more", len(rs)-few))
	}
	return strings.Join(lines, "\n")
}
