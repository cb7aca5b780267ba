package proxytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Results are what became of requests, in the order of their moments.
type Results []Result

func (rs Results) sorted() Results {
	return slices.SortedStableFunc(slices.Values(rs), func(a, b Result) int { return a.At.Compare(b.At) })
}

// Where returns those that a condition holds for.
func (rs Results) Where(holds func(Result) bool) Results {
	var some Results
	for _, r := range rs {
		if holds(r) {
			some = append(some, r)
		}
	}
	return some
}

// Between returns those that were to be sent from one moment to before another.
func (rs Results) Between(from, to time.Time) Results {
	return rs.Where(func(r Result) bool { return !r.At.Before(from) && r.At.Before(to) })
}

// Failures are those whose user did not get what was asked for.
func (rs Results) Failures() Results { return rs.Where(Result.Failed) }

// Unready are those that a pod answered that was not ready when they came.
func (rs Results) Unready() Results {
	return rs.Where(func(r Result) bool { return r.Ready == "false" })
}

// Of counts those that a version answered.
func (rs Results) Of(version string) int {
	return len(rs.Where(func(r Result) bool { return r.Version == version }))
}

// Share is the part that a version answered, 0 of none.
func (rs Results) Share(version string) float64 {
	if len(rs) == 0 {
		return 0
	}
	return float64(rs.Of(version)) / float64(len(rs))
}

// Versions counts the answers of each version.
func (rs Results) Versions() map[string]int {
	counts := map[string]int{}
	for _, r := range rs {
		counts[r.Version]++
	}
	return counts
}

// Pods are the names of the pods that answered, sorted.
func (rs Results) Pods() []string {
	names := map[string]bool{}
	for _, r := range rs {
		if r.Pod != "" {
			names[r.Pod] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Latency is the one that a part of the requests was answered within: 0.5 is
// the median.
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

// Until is how long after a moment a version had come to a share: the moment of
// the first of so many requests on end that are what fair draws give for it.
func (rs Results) Until(from time.Time, version string, share float64, run int) (time.Duration, bool) {
	after := rs.Where(func(r Result) bool { return !r.At.Before(from) })
	for i := 0; i+run <= len(after); i++ {
		if Within999(after[i:i+run].Of(version), run, share) {
			return after[i].At.Sub(from), true
		}
	}
	return 0, false
}

// WantShare fails the test unless a version's share is one that fair draws with
// a probability give, 999 times of 1000.
func (rs Results) WantShare(tb testing.TB, what, version string, share float64) {
	tb.Helper()
	if k, n := rs.Of(version), len(rs); n == 0 || !Within999(k, n, share) {
		tb.Errorf("%s: %d of %d requests (%.2f %%) were answered by %s, want %.2f %%; all: %v",
			what, k, n, 100*rs.Share(version), version, 100*share, rs.Versions())
	}
}

// WantNoFailure fails the test if a user noticed anything, and if a pod was
// asked that was not ready.
func (rs Results) WantNoFailure(tb testing.TB, what string) {
	tb.Helper()
	for problem, some := range map[string]Results{"failed": rs.Failures(), "came to a pod that was not ready": rs.Unready()} {
		if len(some) > 0 {
			tb.Errorf("%s: %d of %d requests %s:\n%s", what, len(some), len(rs), problem, some.head())
		}
	}
}

// head is the first few, one on each line.
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
