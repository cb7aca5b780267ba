package workloads_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

func to(canary, stable int) plan.Counts { return plan.Counts{Canary: canary, Stable: stable} }

// read returns the number of pods that Kubernetes computes from a written number or percentage.
func read(t *testing.T, written any, resolve func(rollout.Amount) int) int {
	t.Helper()
	if n, is := written.(int64); is {
		return int(n)
	}
	text, _ := written.(string)
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || !strings.HasSuffix(text, "%") || n > 100 {
		t.Fatalf("%q is not a percentage", text)
	}
	return resolve(rollout.Amount{Value: n, Percent: true})
}

// TestFenceResolvesBackExactly checks that Kubernetes computes the intended number of pods from each written amount. For up to 100
// replicas, the amount must be a percentage. For more replicas, it must be a percentage if a whole percentage is exact.
func TestFenceResolvesBackExactly(t *testing.T) {
	for n := 1; n <= 400; n++ {
		for k := 0; k <= n; k++ {
			h := workloads.Limits{Surge: k, Unavailable: k, Replicas: n}
			if got := read(t, h.SurgeValue(), func(a rollout.Amount) int { return a.RoundUp(n) }); got != k {
				t.Errorf("surge %d of %d is written as %v, which Kubernetes reads as %d", k, n, h.SurgeValue(), got)
			}
			if got := read(t, h.UnavailableValue(), func(a rollout.Amount) int { return a.RoundDown(n) }); got != k {
				t.Errorf("unavailable %d of %d is written as %v, which Kubernetes reads as %d", k, n, h.UnavailableValue(), got)
			}
			for _, written := range []any{h.SurgeValue(), h.UnavailableValue()} {
				if _, integer := written.(int64); integer && (n <= 100 || k*100%n == 0) {
					t.Errorf("%d of %d is written as an integer, which an autoscaler's change of replicas makes wrong", k, n)
				}
			}
		}
	}
}

// TestPodsThatGoServeNoRoute checks that KnownOf does not count pods that the controller is removing, even if these pods are still ready.
func TestPodsThatGoServeNoRoute(t *testing.T) {
	m := plan.Routing{Traffic: &rollout.Traffic{MaxWeight: 100}}
	for desired, want := range []int{0, 1, 2, 2} {
		name := fmt.Sprintf("of 2 ready pods, %d of which are to stay, bear requests", desired)
		compare.CheckNamed(t, name, want, workloads.KnownOf(pods(desired, 2), &m, noon))
	}
}

func TestWalk(t *testing.T) {
	amount := func(text string) rollout.Amount {
		n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if err != nil {
			t.Fatal(err)
		}
		return rollout.Amount{Value: n, Percent: strings.HasSuffix(text, "%")}
	}
	limits := func(surge, unavailable int) workloads.Limits {
		return workloads.Limits{Surge: surge, Unavailable: unavailable}
	}
	cases := map[string]struct {
		surge, unavailable string
		n                  int
		want               plan.Counts
		stable, canary     rollout.Revision
		next               workloads.Limits // the next limits for n replicas
	}{
		"the user's own room":                       {"3", "2", 10, to(5, 5), pods(10, 10), pods(0, 0), limits(3, 2)},
		"nothing is ready yet: nothing more may go": {"3", "2", 10, to(5, 5), pods(8, 8), pods(5, 0), limits(3, 2)},
		"at rest":                           {"3", "2", 10, to(5, 5), pods(8, 8), pods(5, 5), limits(0, 5)},
		"each ready pod makes room for one": {"3", "2", 10, to(5, 5), pods(8, 8), pods(5, 2), limits(1, 4)},
		"no surge, nothing may be missing: Kubernetes takes one": {"0%", "0%", 10, to(5, 5), pods(10, 10), pods(0, 0), limits(0, 1)},
		"one at a time":                                                   {"1", "0", 10, to(5, 5), pods(10, 10), pods(0, 0), limits(1, 0)},
		"the ready one lets an old one go":                                {"1", "0", 10, to(5, 5), pods(10, 10), pods(1, 1), limits(1, 1)},
		"the last one leaves the surge":                                   {"1", "0", 10, to(5, 5), pods(6, 6), pods(5, 5), limits(0, 5)},
		"too few are ready: nothing may go, one new may start":            {"1", "0", 10, to(5, 5), pods(10, 6), pods(0, 0), limits(1, 0)},
		"one that is not ready goes first":                                {"0", "1", 10, to(5, 5), pods(10, 6), pods(0, 0), limits(0, 1)},
		"pods that are gone are not asked back":                           {"3", "2", 10, to(5, 5), pods(5, 3), pods(5, 0), limits(0, 5)},
		"a pod that is given up but not yet deleted makes no room":        {"1", "0", 5, to(3, 2), pods(4, 5), pods(1, 1), limits(1, 1)},
		"pods that a scale-down takes make no room":                       {"1", "0", 5, to(3, 2), pods(10, 10), pods(0, 0), limits(1, 0)},
		"nor do those that it takes of a version that has fewer than n":   {"1", "0", 10, to(5, 5), pods(9, 9), pods(5, 5), limits(1, 2)},
		"a broken one goes first, where the others are enough":            {"1", "0", 10, to(6, 4), pods(5, 4), pods(9, 9), limits(0, 6)},
		"as many stay as ready ones are missing: they may be ready again": {"1", "0", 10, to(6, 4), pods(5, 1), pods(6, 6), limits(0, 6)},
		"a resting place of n+1":                                          {"1", "0", 10, to(1, 10), pods(10, 10), pods(1, 1), limits(1, 0)},
		"no more new pods than the step asks for":                         {"5", "5", 10, to(1, 9), pods(10, 10), pods(0, 0), limits(0, 1)},
		"new replicas are not yet pods":                                   {"1", "0", 20, to(5, 15), pods(8, 8), pods(2, 2), limits(0, 5)},
		"the new one first":                                               {"1", "0", 1, to(1, 1), pods(1, 1), pods(0, 0), limits(1, 0)},
		"the old one first":                                               {"0", "1", 1, to(1, 0), pods(1, 1), pods(0, 0), limits(0, 1)},
		"minPodsPerReplicaSet may ask for more than n in all":             {"1", "0", 3, to(3, 3), pods(3, 3), pods(0, 0), limits(3, 0)},
	}
	for name, tc := range cases {
		spec := rollout.Spec{MaxSurge: amount(tc.surge), MaxUnavailable: amount(tc.unavailable)}
		m := workloads.Staged{Compiled: &plan.Compiled{Spec: spec}, N: tc.n, Stable: tc.stable, Fresh: tc.canary}
		got, ok := m.NextLimits(workloads.View{Now: noon}, m.Stable, m.Fresh, tc.want, spec.MaxSurge.RoundUp(tc.n))
		if !ok {
			t.Fatalf("%s: it is not held", name)
		}
		tc.next.Replicas = tc.n
		compare.CheckNamed(t, name, tc.next, got)
	}
}

// pods returns a ReplicaSet with the given number of desired pods. Its ready pods have been ready since noon.
func pods(desired, ready int) rollout.Revision {
	r := rollout.Revision{Desired: desired, Pods: max(desired, ready)}
	for range ready {
		r.ReadySince = append(r.ReadySince, noon)
	}
	return r
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
