package workloads_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

var restartAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// podsOf returns a workload with one pod for each letter, by ordinal: o is older than the restart, n is newer, t is terminating, and y
// became ready just now. Pods with upper case letters are not ready. Pods o and n became ready about an hour before y.
func podsOf(text string, n int) rollout.ObservedWorkload {
	r := rollout.Revision{Current: true, Desired: n}
	for i, c := range text {
		p := rollout.Pod{Name: fmt.Sprintf("web-%d", i), Created: restartAt.Add(time.Second), Ready: unicode.IsLower(c), Terminating: c == 't'}
		since := p.Created
		switch c {
		case 'o', 'O':
			p.Created = restartAt.Add(-time.Second)
		case 'y':
			since = restartAt.Add(time.Hour)
		}
		if r.Members = append(r.Members, p); !p.Terminating {
			r.Pods++
		}
		if p.Ready && !p.Terminating {
			r.ReadySince = append(r.ReadySince, since)
		}
	}
	return rollout.ObservedWorkload{Replicas: n, Synced: true, Revisions: []rollout.Revision{r}}
}

func TestRestart(t *testing.T) {
	amount := func(n int) rollout.Amount { return rollout.Amount{Value: n} }
	percent := func(n int) rollout.Amount { return rollout.Amount{Value: n, Percent: true} }
	for name, tc := range map[string]struct {
		pods     string
		replicas int
		most     rollout.Amount
		kind     string
		want     string // the ordinals of the pods to delete, in order
	}{
		"the highest ordinal first":          {"oooo", 4, amount(1), "", "3"},
		"Recreate allows all, a restart not": {"oooo", 4, percent(100), "", "3"},
		"two at once":                        {"oooo", 4, amount(2), "", "3 2"},
		"two, but the API server drops them": {"oooo", 4, amount(2), "StatefulSet", "3"},
		"25 % of 10 are 2":                   {"oooooooooo", 10, percent(25), "", "9 8"},
		"25 % of 10 nodes are 3":             {"oooooooooo", 10, percent(25), "DaemonSet", "9 8 7"},
		"one at a time, although 0 may":      {"oo", 2, amount(0), "", "1"},
		"one, although 25 % of 3 are 0":      {"ooo", 3, percent(25), "", "2"},
		"the only pod":                       {"o", 1, percent(25), "", "0"},
		"new pods stay":                      {"onno", 4, amount(1), "", "3"},
		"all are new":                        {"nnnn", 4, amount(4), "", ""},
		"one terminates":                     {"ooot", 4, amount(1), "", ""},
		"its replacement is not ready":       {"oootN", 4, amount(1), "", ""},
		"its replacement serves":             {"oootn", 4, amount(1), "", "2"},
		"ready, but not for long enough":     {"oooy", 4, amount(1), "", ""},
		"a pod is missing":                   {"ooo", 4, amount(1), "", ""},
		"a pod that is not ready costs none": {"oOoo", 4, amount(1), "", "1"},
		"all pods that are not ready":        {"OoOO", 4, amount(1), "", "3 2 0"},
		"a new pod fails":                    {"oooN", 4, amount(1), "", ""},
		"a new pod fails, two may":           {"oooN", 4, amount(2), "", "2"},
		"scaling down from 10 to 2":          {"oooooooooo", 2, amount(1), "", ""},
		"scaling down, and one is not ready": {"oooooooOoo", 2, amount(1), "", "7"},
		"no pods":                            {"", 0, amount(1), "", ""},
		"not all at once":                    {"oo", 2, percent(100), "", "1"},
	} {
		spec := rollout.Spec{Workload: rollout.Workload{Name: "web", Kind: tc.kind}, MaxUnavailable: tc.most, MinReadySeconds: 1}
		var got []string
		live := podsOf(tc.pods, tc.replicas)
		_, now, _ := workloads.Restart(spec, live, restartAt, restartAt.Add(time.Hour))
		for _, e := range now {
			got = append(got, strings.TrimPrefix(e.Pod.Name, "web-"))
		}
		compare.CheckNamed(t, name, tc.want, strings.Join(got, " "))
	}
}

// TestRestartKeepsItsLimit checks random workloads. After the deletions, at least N-maxUnavailable pods are available. If fewer were
// available before, no ready pod is deleted.
func TestRestartKeepsItsLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n := rng.IntN(12)
		var pods strings.Builder
		for range n + rng.IntN(3) {
			pods.WriteByte("ooooonNOty"[rng.IntN(10)])
		}
		spec := rollout.Spec{MaxUnavailable: rollout.Amount{Value: rng.IntN(120), Percent: true}, MinReadySeconds: 1}
		live, now := podsOf(pods.String(), n), restartAt.Add(time.Hour)
		serving := live.Revisions[0].Serving(now, time.Second)
		ready := 0
		old, deleted, _ := workloads.Restart(spec, live, restartAt, now)
		for _, e := range deleted {
			if e.Pod.Terminating || !e.Pod.Created.Before(restartAt) {
				t.Fatalf("%s: %s is deleted", pods.String(), e.Pod.Name)
			}
			if e.Pod.Ready {
				ready++
			}
		}
		least := n - max(1, spec.MaxUnavailable.RoundDown(n))
		if is := live.Revisions[0].Pods; ready > 0 && (serving-ready < least || is > n) {
			t.Fatalf("%s: %d pods serve of %d, %d of them are deleted, and %s may be missing", pods.String(), serving, n, ready, spec.MaxUnavailable)
		}
		if len(old) > 0 && serving == n && live.Revisions[0].Pods == n && len(deleted) == 0 {
			t.Fatalf("%s: all pods serve, and none is deleted", pods.String())
		}
	}
}
