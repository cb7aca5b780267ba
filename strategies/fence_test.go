package strategies

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/rollout"
)

func percentOf(t *testing.T, text string) rollout.Amount {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil || !strings.HasSuffix(text, "%") {
		t.Fatalf("%q is not a percentage", text)
	}
	return rollout.Amount{Value: n, Percent: true}
}

// Kubernetes must read from the percentages the very numbers of pods that were
// meant, for each number of replicas up to 100.
func TestFenceResolvesBackExactly(t *testing.T) {
	for n := 1; n <= 100; n++ {
		for k := 0; k <= n; k++ {
			h := fence{s: k, m: k, n: n}
			if got := percentOf(t, h.surge()).RoundUp(n); got != k {
				t.Errorf("surge %d of %d is written as %s, which Kubernetes reads as %d", k, n, h.surge(), got)
			}
			if got := percentOf(t, h.unavailable()).RoundDown(n); got != k {
				t.Errorf("unavailable %d of %d is written as %s, which Kubernetes reads as %d", k, n, h.unavailable(), got)
			}
		}
	}
}

// Above 100 pods a percent is more than one pod: at most n/100 pods fewer new
// ones than asked for, and at most n/100 more old ones taken.
func TestFenceAbove100(t *testing.T) {
	for _, n := range []int{101, 150, 199, 200, 333, 1000, 5000} {
		for k := 0; k <= n; k++ {
			h := fence{s: k, m: k, n: n}
			s, m := percentOf(t, h.surge()).RoundUp(n), percentOf(t, h.unavailable()).RoundDown(n)
			if off := k - s; off > n/100 || (off < 0 && s > (n+99)/100) {
				t.Errorf("surge %d of %d is read as %d", k, n, s)
			}
			if off := m - k; off > n/100 || off < 0 {
				t.Errorf("unavailable %d of %d is read as %d", k, n, m)
			}
			if k > 0 && s == 0 {
				t.Errorf("surge %d of %d is read as none", k, n)
			}
			if m > n {
				t.Errorf("unavailable %d of %d is read as %d", k, n, m)
			}
		}
	}
}

// pods are ReplicaSets of old and new pods, ready since noon.
func pods(desired, ready int) rollout.Revision {
	r := rollout.Revision{Desired: desired, Pods: max(desired, ready)}
	for range ready {
		r.ReadySince = append(r.ReadySince, noon)
	}
	return r
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestWalk(t *testing.T) {
	amount := func(text string) rollout.Amount {
		n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if err != nil {
			t.Fatal(err)
		}
		return rollout.Amount{Value: n, Percent: strings.HasSuffix(text, "%")}
	}
	cases := map[string]struct {
		reason             string
		surge, unavailable string
		n                  int
		want               counts
		stable, canary     rollout.Revision
		fence              fence
		none               bool
	}{
		"Start": {
			"the user's own room", "3", "2", 10, counts{5, 5}, pods(10, 10), pods(0, 0), fence{s: 3, m: 2, n: 10}, false,
		},
		"NewOnesStart": {
			"nothing is ready yet: nothing more may go", "3", "2", 10, counts{5, 5}, pods(8, 8), pods(5, 0),
			fence{s: 3, m: 2, n: 10}, false,
		},
		"NewOnesReady": {"at rest", "3", "2", 10, counts{5, 5}, pods(8, 8), pods(5, 5), fence{s: 0, m: 5, n: 10}, false},
		"SomeReady": {
			"each ready pod makes room for one", "3", "2", 10, counts{5, 5}, pods(8, 8), pods(5, 2), fence{s: 1, m: 4, n: 10},
			false,
		},
		"NoRoom": {
			"no surge, nothing may be missing: Kubernetes takes one", "0%", "0%", 10, counts{5, 5}, pods(10, 10), pods(0, 0),
			fence{s: 0, m: 1, n: 10}, false,
		},
		"SurgeOnly": {
			"one at a time", "1", "0", 10, counts{5, 5}, pods(10, 10), pods(0, 0), fence{s: 1, m: 0, n: 10}, false,
		},
		"SurgeOnlyNext": {
			"the ready one lets an old one go", "1", "0", 10, counts{5, 5}, pods(10, 10), pods(1, 1), fence{s: 1, m: 1, n: 10},
			false,
		},
		"SurgeOnlyLast": {
			"the last one leaves the surge", "1", "0", 10, counts{5, 5}, pods(6, 6), pods(5, 5), fence{s: 0, m: 5, n: 10}, false,
		},
		"OldAreBroken": {
			"too few are ready: nothing may go, one new may start", "1", "0", 10, counts{5, 5}, pods(10, 6), pods(0, 0),
			fence{s: 1, m: 0, n: 10}, false,
		},
		"OldAreBrokenU": {
			"without a surge nothing can be held", "0", "1", 10, counts{5, 5}, pods(10, 6), pods(0, 0), fence{}, true,
		},
		"NeverBack": {
			"what is gone is not asked back", "3", "2", 10, counts{5, 5}, pods(5, 3), pods(5, 0), fence{s: 0, m: 5, n: 10},
			false,
		},
		"OnTheWayOut": {
			"a pod that is given up but not yet deleted makes no room", "1", "0", 5, counts{3, 2}, pods(4, 5), pods(1, 1),
			fence{s: 1, m: 1, n: 5}, false,
		},
		"SmallerWeight": {
			"no pod is started for a smaller step, and none comes back", "1", "0", 10, counts{1, 10}, pods(8, 8), pods(2, 2),
			fence{s: 0, m: 2, n: 10}, false,
		},
		"SmallerWeightUp": {
			"nor is one more stopped", "1", "0", 10, counts{1, 10}, pods(8, 8), pods(3, 3), fence{s: 1, m: 2, n: 10}, false,
		},
		"ScaledDown": {
			"pods that a scale-down takes make no room", "1", "0", 5, counts{3, 2}, pods(10, 10), pods(0, 0),
			fence{s: 1, m: 0, n: 5}, false,
		},
		"RestsAboveN": {
			"a resting place of n+1", "1", "0", 10, counts{1, 10}, pods(10, 10), pods(1, 1), fence{s: 1, m: 0, n: 10}, false,
		},
		"SmallStep": {
			"no more new pods than the step asks for", "5", "5", 10, counts{1, 9}, pods(10, 10), pods(0, 0),
			fence{s: 0, m: 1, n: 10}, false,
		},
		"ScaledUp": {
			"new replicas are not yet pods", "1", "0", 20, counts{5, 15}, pods(8, 8), pods(2, 2), fence{s: 0, m: 5, n: 20},
			false,
		},
		"OnePodSurge": {
			"the new one first", "1", "0", 1, counts{1, 1}, pods(1, 1), pods(0, 0), fence{s: 1, m: 0, n: 1}, false,
		},
		"OnePodNoSurge": {
			"the old one first", "0", "1", 1, counts{1, 0}, pods(1, 1), pods(0, 0), fence{s: 0, m: 1, n: 1}, false,
		},
		"FloorOverlapped": {
			"minPodsPerReplicaSet may ask for more than n in all", "1", "0", 3, counts{3, 3}, pods(3, 3), pods(0, 0),
			fence{s: 3, m: 0, n: 3}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := rollout.Spec{MaxSurge: amount(tc.surge), MaxUnavailable: amount(tc.unavailable)}
			m := moving{plan: &plan{spec: spec}, n: tc.n, stable: tc.stable, fresh: tc.canary}
			got, ok := m.walk(View{Now: noon}, tc.want)
			if ok == tc.none {
				t.Fatalf("%s: held is %t", tc.reason, ok)
			}
			if diff := cmp.Diff(tc.fence, got, compareFence); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
