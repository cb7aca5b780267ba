package strategies_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

var agent = rollout.Workload{Kind: "DaemonSet", Namespace: testApp.Namespace, Name: "web"}

// agentsAt returns a DaemonSet at its first step, which has the given weight. Each letter stands for a node with a new (n) or old (o) pod.
// A capital letter stands for a pod that is not ready, and "-" for a node whose pod is being created. Pod i is on node-i.
func agentsAt(t *testing.T, share int, pods string, change func(*rollout.Spec)) strategies.Input {
	t.Helper()
	h := twoVersions(func(s *rollout.Spec) {
		*s = ofSet(weight(share), aPause)
		s.Workload, s.MaxUnavailable = agent, rollout.Amount{Value: 1}
		if change != nil {
			change(s)
		}
	})
	in := world(h)
	of := func(commit string, ready, broken rune) rollout.Revision {
		pin := rollout.Pin{Label: rollout.LabelRevision, Value: commit}
		r := rollout.Revision{Name: "web-" + commit, Hash: h.at(commit).Templates[agent], Pin: pin}
		for i, is := range pods {
			if is == ready || is == broken {
				r.Members = append(r.Members, rollout.Pod{Name: fmt.Sprintf("web-%d", i), UID: fmt.Sprint(i), Ready: is == ready,
					Node: fmt.Sprintf("node-%d", i)})
				r.Pods++
			}
			if is == ready {
				r.ReadySince = append(r.ReadySince, in.Now.Add(-time.Minute))
			}
		}
		r.Desired = r.Pods
		return r
	}
	old, next := of(commitID(0), 'o', 'O'), of(commitID(1), 'n', 'N')
	old.Current = true
	live := rollout.ObservedWorkload{Replicas: len(pods), Hash: old.Hash, Synced: true, Revisions: []rollout.Revision{old}}
	in.Observed = rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{agent: live}}
	if transition(&in, h); len(in.State.Progress) != 1 || in.State.Progress[0].Workload != agent {
		t.Fatalf("a release begins as %s", dump(in.State))
	}
	old.Current, next.Current, next.Desired = false, true, len(pods)-old.Pods
	changeLive(&in, agent, func(live *rollout.ObservedWorkload) {
		live.Hash, live.Revisions = next.Hash, []rollout.Revision{next, old}
	})
	return in
}

// strategyOf returns the update strategy of the desired DaemonSet.
func strategyOf(in strategies.Input) any {
	v := workloads.View{Now: in.Now, Source: in.Source, Stable: in.Source, Observed: in.Observed}
	o, _ := rollout.Find(mustDesired(in.State, v), func(o rollout.Object) bool { return o.Ref() == agent.Ref() })
	return o.Map("spec", "updateStrategy")["type"]
}

// evicted returns the nodes whose pods are evicted in this pass.
func evicted(in strategies.Input) []string {
	return rollout.Mapped(strategies.Evictions(in), func(e workloads.Eviction) string { return e.Pod.Node })
}

// TestDaemonSetEvictions checks that a step evicts pods on the requested number of nodes, but not more ready pods than maxUnavailable
// allows.
func TestDaemonSetEvictions(t *testing.T) {
	two := func(s *rollout.Spec) { s.MaxUnavailable = rollout.Amount{Value: 2} }
	for name, tc := range map[string]struct {
		weight int
		pods   string
		change func(*rollout.Spec)
		want   int
	}{
		"the first":                        {30, "oooooooooo", nil, 1},
		"two at once":                      {30, "oooooooooo", two, 2},
		"never more than are asked for":    {10, "oooooooooo", two, 1},
		"15 % of 10 is two":                {30, "oooooooooo", func(s *rollout.Spec) { s.MaxUnavailable = percent(15) }, 2},
		"one is being made":                {30, "-ooooooooo", nil, 0},
		"one is being made, two may be":    {30, "-ooooooooo", two, 1},
		"a new one is not ready":           {30, "Nooooooooo", nil, 0},
		"a new one serves":                 {30, "nooooooooo", nil, 1},
		"as many as are asked for":         {30, "nnnooooooo", nil, 0},
		"more than are asked for":          {30, "nnnnoooooo", nil, 0},
		"old pods that are not ready":      {30, "OOOOOOOOOO", nil, 3},
		"one anywhere is broken":           {10, "oooooooooO", nil, 1},
		"half are broken":                  {20, "OoOoOoOoOo", nil, 2},
		"an old one elsewhere is missing":  {100, "oO", nil, 1},
		"nothing is asked for":             {0, "oooo", nil, 0},
		"one node waits for the promotion": {50, "o", nil, 0},
		"one node is all":                  {100, "o", nil, 1},
		"no node":                          {100, "", nil, 0},
	} {
		in := agentsAt(t, tc.weight, tc.pods, tc.change)
		if got := evicted(in); len(got) != tc.want {
			t.Errorf("%s: %v, want %d", name, got, tc.want)
		}
	}
}

// TestDaemonSetEvictsBesideStrays checks that stray pods allow no further evictions. A stray pod is on a node that should have none. While
// the controller removes other surplus pods, no ready pod is evicted.
func TestDaemonSetEvictsBesideStrays(t *testing.T) {
	for strays, want := range map[int]int{2: 1, 1: 0, 0: 0} {
		in := agentsAt(t, 50, "oooooooooo", nil)
		changeLive(&in, agent, func(live *rollout.ObservedWorkload) { live.Replicas, live.Strays = 8, strays })
		if got := evicted(in); len(got) != want {
			t.Errorf("10 pods on 8 nodes, and %d strays: %v, want %d", strays, got, want)
		}
	}
}

// TestDaemonSetEvictsInTurn checks that a release evicts pods in one order of nodes until the release ends. The next release must use
// another order.
func TestDaemonSetEvictsInTurn(t *testing.T) {
	atOnce := func(s *rollout.Spec) { s.MaxUnavailable = percent(100) }
	in := agentsAt(t, 60, "oooooooooo", atOnce)
	all := evicted(in)
	if len(all) != 6 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 6 {
		t.Fatalf("60 %% are %v", all)
	}
	live := in.Observed.Workloads[agent]
	fresh, old := &live.Revisions[0], &live.Revisions[1]
	for range 3 { // in each iteration, the first node gets a new pod
		i := slices.IndexFunc(old.Members, func(p rollout.Pod) bool { return p.Node == all[0] })
		old.Members = slices.Delete(old.Members, i, i+1)
		old.ReadySince = old.ReadySince[1:]
		fresh.Desired++
		all = all[1:]
		if got := evicted(in); !slices.Equal(got, all) {
			t.Errorf("then %v, want %v", got, all)
		}
	}
	going := &old.Members[slices.IndexFunc(old.Members, func(p rollout.Pod) bool { return p.Node == all[0] })]
	going.Terminating = true // a terminating pod counts as replaced
	fresh.Desired++
	if got := evicted(in); !slices.Equal(got, all[1:]) {
		t.Errorf("while one is going %v, want %v", got, all[1:])
	}

	in = agentsAt(t, 60, "oooooooooo", atOnce)
	other, another := evicted(in), in.State.Release.Hash+"x"
	changeLive(&in, agent, func(live *rollout.ObservedWorkload) { live.Hash, live.Revisions[0].Hash = another, another })
	in.State.Release.Hash, in.State.Release.Templates = another, map[rollout.Workload]rollout.Hash{agent: another}
	if got := evicted(in); len(got) != 6 || slices.Equal(got, other) {
		t.Errorf("another release takes %v, as this one", got)
	}
}

// TestDaemonSetNodeOrder checks that nodes that match an earlier selector come first, and that all labels of a selector must match. Nothing
// is evicted until the nodes' labels are known.
func TestDaemonSetNodeOrder(t *testing.T) {
	in := agentsAt(t, 60, "oooooooooo", func(s *rollout.Spec) {
		s.MaxUnavailable = percent(100)
		s.Canary.NodeOrder = []rollout.NodeSelector{{MatchLabels: map[string]string{"pool": "canary", "zone": "a"}},
			{MatchLabels: map[string]string{"zone": "a"}}}
	})
	if got := evicted(in); len(got) > 0 || !strategies.OrdersNodes(in) {
		t.Errorf("without labels %v; nodes are asked for: %t", got, strategies.OrdersNodes(in))
	}
	in.Observed.Nodes = map[string]map[string]string{
		"node-7": {"pool": "canary", "zone": "a"}, "node-2": {"zone": "a"}, "node-4": {"zone": "a", "pool": "web"}, "node-1": {"pool": "canary"},
	}
	got := evicted(in)
	if len(got) != 6 {
		t.Fatalf("the nodes are %v, want 6", got)
	}
	slices.Sort(got[1:3])
	if want := []string{"node-7", "node-2", "node-4"}; !slices.Equal(got[:3], want) {
		t.Errorf("the order is %v, want node-7, then 2 and 4, then others", got)
	}
	in.State.Phase = rollout.Healthy
	if strategies.OrdersNodes(in) {
		t.Error("nodes are asked for at rest")
	}
}

// TestDaemonSetIsLeftAlone checks that no pod is deleted outside a step, or before the controller has observed the step's objects.
func TestDaemonSetIsLeftAlone(t *testing.T) {
	withAgent := func(change func(*rollout.ObservedWorkload)) func(*strategies.Input) {
		return func(in *strategies.Input) { changeLive(in, agent, change) }
	}
	for name, change := range map[string]func(*strategies.Input){
		"a promotion": func(in *strategies.Input) { in.State.Phase = rollout.Promoting },
		"a rollback": func(in *strategies.Input) {
			in.State.Phase, in.State.Rollback = rollout.Aborting, &rollout.Rollback{To: in.State.Source}
		},
		"another template":                        withAgent(func(live *rollout.ObservedWorkload) { live.Hash = "h1-other" }),
		"a spec that the controller has not seen": withAgent(func(live *rollout.ObservedWorkload) { live.Synced = false }),
		"a commit that is gone":                   func(in *strategies.Input) { in.Source = nil },
		"a release without it":                    func(in *strategies.Input) { in.State.Progress = nil },
	} {
		in := agentsAt(t, 30, "oooooooooo", nil)
		if len(evicted(in)) != 1 {
			t.Fatal("nothing is evicted without a change")
		}
		if change(&in); len(evicted(in)) != 0 {
			t.Errorf("%s: %v is deleted", name, evicted(in))
		}
	}
}

// TestDaemonSetWithoutNodes checks the recorded state and the reported wait of a DaemonSet without nodes, which has 0 replicas.
func TestDaemonSetWithoutNodes(t *testing.T) {
	in := agentsAt(t, 30, "nnnooooooo", nil)
	changeLive(&in, agent, func(live *rollout.ObservedWorkload) { live.Replicas = 0 })
	d := strategies.Decide(in)
	compare.CheckNamed(t, "it is recorded as", "shop Suspended: 0 nodes at step 1/2 setWeight 30", d.Subject)
	in.State = d.State
	want := "nodes that its pods may run on (Suspended: 0 nodes; see taints and nodeSelector)"
	compare.CheckNamed(t, "it waits for", want, strategies.Decide(in).Waiting)
}

// TestDaemonSetOfAThirdTemplate checks that no pod is replaced when gitrollout undoes a manual image change at a step.
func TestDaemonSetOfAThirdTemplate(t *testing.T) {
	in := agentsAt(t, 30, "nnnooooooo", nil)
	changeLive(&in, agent, func(live *rollout.ObservedWorkload) {
		pin := rollout.Pin{Label: rollout.LabelRevision, Value: "third"}
		live.Revisions[0].Current = false
		live.Revisions = slices.Insert(live.Revisions, 0, rollout.Revision{Name: "web-third", Hash: live.Hash, Pin: pin, Current: true})
	})
	compare.CheckNamed(t, "it is put back with", "OnDelete", strategyOf(in))
}

// TestDaemonSetStep checks that a step uses OnDelete, ends when new pods on enough nodes are ready, and accepts new pods on nodes that
// join. The promotion uses the user's own strategy.
func TestDaemonSetStep(t *testing.T) {
	const joined = "4 of 10 new, 3 asked: a node without a pod gets a new pod"
	for pods, tc := range map[string]struct {
		done    bool
		surplus string
	}{
		"oooooooooo": {}, "nnoooooooo": {}, "nnNooooooo": {}, "nn-ooooooo": {}, "nnnooooooo": {done: true}, "nnnnoooooo": {true, joined},
	} {
		in := agentsAt(t, 30, pods, nil)
		compare.CheckNamed(t, pods+": the strategy", "OnDelete", strategyOf(in))
		compare.CheckNamed(t, pods+": the step is done", tc.done, strategies.Decide(in).State.Progress[0].Step > 0)
		compare.CheckNamed(t, pods+": the surplus", tc.surplus, strategies.Explain(in)[0].Surplus)
	}
	in := agentsAt(t, 30, "nnnooooooo", nil)
	in.State.Phase = rollout.Promoting
	compare.CheckNamed(t, "promoted, its strategy", "RollingUpdate", strategyOf(in))
}
