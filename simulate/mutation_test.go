package simulate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// mutation wraps a part of the reconciler, so that the reconciler breaks a rule. TestMutations checks that the simulator notices the fault.
type mutation struct {
	name   string
	worlds string // names of worlds; the seeds alternate between them
	seed   int    // runs first, and is known to notice the fault; 0: seed 1 runs first
	wrap   wrap
}

var mutations = []mutation{
	{"an advance is applied before it is pushed", "Calm", 0, func(p starting) { p.Repository = &lateGit{Clone: p.Clone, name: p.Name} }},
	{"a push that failed is taken for one that succeeded", "Git", 0, func(p starting) { p.Repository = &deafGit{p.Clone} }},
	{"a push does not compare where the branch is", "Pair Eight", 0, func(p starting) { p.Repository = &bluntGit{p.Clone} }},
	{"a rollback waits until Git has it", "Git Calm", 13, applies(patient)},
	{"pods go before Services do", "Calm API", 29, applies(hasty)},
	{"a pod counts as ready as soon as it exists", "Calm Kills", 11, observesEach(hopeful)},
	{"the hold is left out", "Calm", 0, writes(loose)},
	{"requests follow pods that are not ready yet", "Calm Kills", 11, eager},
	{"pods go before proxies know that they get no requests", "Calm Crashes", 11, bendSpecs(hurried)},
	{"whatever Git is at, everything waits for it", "Pumps SlowApps", 15, applies(barrier)},
	{"a proposal stays, whatever becomes of main", "Rewrites Calm", 58, func(p starting) { p.Past = &contentMerger{p.Clone} }},
	{"a StatefulSet's partition is one too low", "StatefulSets", 15, writes(lowPartition)},
	{"all users reach a version for matched users", "StatefulSets", 0, writes(open)},
	{"a CloneSet's partition is one too low", "CloneSets", 0, writes(lowPartition)},
	{"the partition of Kruise's DaemonSet is one too low", "KruisesDaemonSets", 0, writes(lowPartition)},
	{"the partition of Kruise's StatefulSet is one too low", "KruisesStatefulSets", 0, writes(lowPartition)},
	{"the partition of a kind of the configuration lets one pod too many go", "OwnKinds", 26, writes(lowPartition)},
	{"evictions of Kruise's StatefulSet are left out", "KruisesStatefulSets", 18, evicts(sparing)},
	{"CloneSet's template of all pods stays", "CloneSets CalmSets", 50, observesEach(oldBase)},
	{"evictions are left out", "StatefulSets", 18, evicts(sparing)},
	{"a StatefulSet keeps a new pod at a step of none", "StatefulSets", 12, applies(leftOver)},
	{"a DaemonSet loses two pods where one is to go", "DaemonSets", 0, evicts(greedy)},
	{"a pod made by scaling stays, with rebalance", "StatefulSets", 69, evicts(content)},
	{"nodes are taken in any order", "DaemonSets", 0, evicts(fickle)},
	{"a Job that has failed is made again", "Hooks", 0, func(p starting) { p.Jobs = hopefulJobs{p.View} }},
	{"a Job that has failed is taken for one that has ended well", "Hooks", 0, func(p starting) { p.Jobs = kindJobs{p.View} }},
	{"a Job is lost at its app's new name", "PeopleAndHooks", 60, func(p starting) { p.Jobs = namedJobs{p.View, p.u} }},
	{"a Job is made before it is on record", "Hooks", 0, func(p starting) { p.Jobs = hastyJobs{p.View} }},
	{"hooks before a release are left out", "Hooks", 0, withoutHooks("before")},
	{"hooks after a release are left out", "Hooks", 0, withoutHooks("after")},
	{"hooks after a rollback are left out", "Hooks", 16, withoutHooks("abort")},
	{"a hook that has changed alone is left out", "Hooks", 0, renders(sameHooks)},
	{"without a Rollout document there are no hooks", "PlainHooks", 0, renders(unhooked)},
	{"a request to break glass aborts any release", "BreakGlass BreakGlassAndPeople", 0, observesEach(anyGlass)},
	{"abort --now takes its clone for Git", "BreakGlassNow", 0, func(p starting) {
		if p.Name == userName {
			p.Repository, p.Only = boldClone{p.Repository.(userClone)}, nil
		}
	}},
	{"a restart deletes two pods where one is to go", "Restarts", 0, evicts(greedy)},
	{"a restart deletes the pods that it made", "Restarts", 0, observesEach(aged)},
	{"an object is written in every pass", "Calm", 0, applies(busy)},
}

// enough is the largest number of seeds to run for a mutation.
const enough = 200

// TestMutations breaks the reconciler with each mutation, and checks that one of the first 200 seeds notices the fault. If a mutation's own
// seed misses the fault, the other seeds run. The log names the seed that noticed the fault.
func TestMutations(t *testing.T) {
	for _, m := range slices.Concat(mutations, lawMutations) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			names := strings.Fields(m.worlds)
			for n := range enough + 1 {
				i := cmp.Or(n, m.seed, 1) - 1
				at := slices.IndexFunc(worlds, func(w world) bool { return w.name == names[i%len(names)] })
				u := play(uint64(i/len(names))+1, worlds[at].chaos, m, false)
				if u.failure != "" {
					t.Logf("caught by seed %d: %s", i+1, u.failure)
					return
				}
			}
			t.Errorf("not caught by %d seeds", enough)
		})
	}
}

// lateGit is a mutation that reports each push as successful, but delays the push until the next fetch.
type lateGit struct {
	*memgit.Clone
	name string
	owed []rollout.Update // each Parent is the commit to push
}

func (g *lateGit) Fetch(ctx context.Context) (rollout.Heads, error) {
	for _, u := range g.owed {
		if g.Server.Head(u.Branch) == u.Old {
			g.Server.Set(g.name, u.Branch, u.Parent)
		}
	}
	g.owed = nil
	return g.Clone.Fetch(ctx)
}

func (g *lateGit) Push(_ context.Context, updates []rollout.Update) (map[string]string, error) {
	made := map[string]string{}
	for _, u := range updates {
		if u.Delete {
			u.Parent = ""
		} else {
			u.Parent = g.Server.Make(u.Parent, memgit.Change{Author: g.name, Message: u.Message, When: u.When, Edits: u.Edits})
			made[u.Branch], g.Local[u.Parent] = u.Parent, true
		}
		g.owed = append(g.owed, u)
	}
	return made, nil
}

// deafGit is a mutation that reports failed pushes as successful.
type deafGit struct{ *memgit.Clone }

func (g *deafGit) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	made, err := g.Clone.Push(ctx, updates)
	if err == nil {
		return made, nil
	}
	made = map[string]string{}
	for _, u := range updates {
		made[u.Branch] = u.Old
	}
	return made, nil
}

// bluntGit is a mutation that pushes without a check that the branch is still at the expected commit.
type bluntGit struct{ *memgit.Clone }

func (g *bluntGit) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	updates = slices.Clone(updates)
	for i := range updates {
		updates[i].Old = g.Server.Head(updates[i].Branch)
		if updates[i].Branch == stateBranch {
			updates[i].Parent = updates[i].Old
		}
	}
	return g.Clone.Push(ctx, updates)
}

// patient is a mutation that skips the apply of a rollback that is not recorded in Git yet.
func patient(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	o := p.u.oracle
	if slices.ContainsFunc(objects, func(object rollout.Object) bool { return o.goesBack(app, o.states[app], object) }) {
		return nil
	}
	return p.View.Apply(ctx, app, objects)
}

// lowPartition is a mutation that changes each partition by one, so that the controller updates one pod more than the step allows.
func lowPartition(_ starting, _ string, o rollout.Object) {
	path, more := "spec.updateStrategy.rollingUpdate.partition", int64(-1)
	if p, _ := rollout.FindPartitioned(ownKinds, o.APIVersion(), o.Kind()); p != nil {
		path = p.Partition
		if p.CountsNew {
			more = 1
		}
	}
	if n, held := rollout.In(o, path).(int64); held && n > 0 {
		o.Set(n+more, strings.Split(path, ".")...)
	}
}

// leftOver is a mutation that does not write a workload at a step that requires no new pod.
func leftOver(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	return p.View.Apply(ctx, app, slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool {
		w, is := rollout.WorkloadOf(o.Ref())
		s, source := p.u.promises.onRecord(w)
		pr, moves := s.ProgressOf(w)
		if !is || !moves || source == nil || s.Phase == rollout.Aborting {
			return false
		}
		legs := source.legs()
		step := at(source, legs, pr)
		return step < len(legs) && legs[step].pods(p.u.kube.Deployments[w].Replicas) == 0
	}))
}

// open is a mutation that removes the revision from the selectors of all Services except canary Services.
func open(_ starting, _ string, o rollout.Object) {
	if o.Kind() == "Service" && !strings.HasSuffix(o.Name(), "-canary") {
		delete(o.Map("spec", "selector"), rollout.LabelRevision)
	}
}

// sparing is a mutation that evicts no pod.
func sparing(context.Context, starting, string, rollout.Pod) error { return nil }

// content is a mutation that evicts only pods that are not ready.
func content(ctx context.Context, p starting, namespace string, pod rollout.Pod) error {
	if pod.Ready {
		return nil
	}
	return p.View.Evict(ctx, namespace, pod)
}

// greedy is a mutation that also evicts a second pod of the evicted pod's revision.
func greedy(ctx context.Context, p starting, namespace string, pod rollout.Pod) error {
	for _, w := range p.u.kube.Observe().Workloads {
		for _, r := range w.Revisions {
			i := slices.IndexFunc(r.Members, func(p rollout.Pod) bool { return p.UID == pod.UID })
			j := slices.IndexFunc(r.Members, func(p rollout.Pod) bool { return p.UID != pod.UID && !p.Terminating })
			if i >= 0 && j >= 0 {
				if err := p.View.Evict(ctx, namespace, r.Members[j]); err != nil {
					return err
				}
			}
		}
	}
	return p.View.Evict(ctx, namespace, pod)
}

// barrier is a mutation that makes all applies fail while another thread of the process, such as a fetch or a push, is running.
func barrier(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	if len(p.threads) > 1 {
		return errors.New("all apps wait for Git")
	}
	return p.View.Apply(ctx, app, objects)
}

// hasty is a mutation that applies Services only in a pass that writes no other object.
func hasty(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	isService := func(o rollout.Object) bool { return o.Kind() == "Service" }
	isOther := func(o rollout.Object) bool { return !isService(o) }
	before := p.u.cluster.writes
	err := p.View.Apply(ctx, app, slices.DeleteFunc(slices.Clone(objects), isService))
	if err != nil || p.u.cluster.writes != before {
		return err
	}
	return p.View.Apply(ctx, app, slices.DeleteFunc(slices.Clone(objects), isOther))
}

// hopeful is a mutation that shows each pod as ready.
func hopeful(p starting, _ string, live *rollout.ObservedWorkload) {
	for i := range live.Revisions {
		r := &live.Revisions[i]
		r.ReadySince = slices.Repeat([]time.Time{p.u.kube.Now.Add(-time.Hour)}, r.Pods)
	}
}

// oldBase is a mutation that hides that the current revision is also the base revision of the pods below the partition.
func oldBase(_ starting, _ string, live *rollout.ObservedWorkload) {
	for i, r := range live.Revisions {
		live.Revisions[i].Base = r.Base && !r.Current
	}
}

// eager is a mutation that shows new pods and their endpoints as ready, so that requests are routed to pods that are not ready.
func eager(p starting) {
	observes(func(p starting, _ string, seen *rollout.Observed) {
		for w, live := range seen.Workloads {
			if p.u.kube.Routes[routeRef(w)] == nil {
				continue
			}
			live.Revisions = slices.Clone(live.Revisions)
			for i, r := range live.Revisions {
				for r.Current && len(live.Revisions[i].ReadySince) < r.Pods {
					live.Revisions[i].ReadySince = append([]time.Time{p.u.kube.Now.Add(-time.Hour)}, live.Revisions[i].ReadySince...)
				}
			}
			seen.Workloads[w] = live
		}
	})(p)
	p.Observer = serving{p.Observer}
}

type serving struct{ reconciler.Observer }

func (serving) Serves(context.Context, rollout.Ref, string) (bool, error) { return true, nil }

// hurried is a mutation that removes the wait for proxies, and the delays before the removal of old pods.
func hurried(s *rollout.Spec) {
	if s.Canary == nil || s.Canary.Traffic == nil {
		return
	}
	t := *s.Canary.Traffic
	t.Settle, s.Canary.AbortScaleDownDelaySeconds, s.Canary.ScaleDownDelaySeconds = 0, 0, 0
	s.Canary.Traffic = &t
}

// loose is a mutation that removes the large minReadySeconds by which gitrollout stops a Deployment at a step.
func loose(_ starting, _ string, o rollout.Object) {
	if n, _ := o.Map("spec")["minReadySeconds"].(int64); n > 1<<30 {
		o.Map("spec")["minReadySeconds"] = int64(0)
	}
}

// busy is a mutation that writes each ConfigMap in every pass.
func busy(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	for _, o := range objects {
		if live := p.View.cluster.objects[o.Ref()]; live != nil && o.Kind() == "ConfigMap" {
			live.digest = ""
		}
	}
	return p.View.Apply(ctx, app, objects)
}

// contentMerger is a mutation that reports each proposal as mergeable without conflicts.
type contentMerger struct{ *memgit.Clone }

func (c *contentMerger) Merge(ctx context.Context, commit, onto string) (rollout.Merge, error) {
	m, err := c.Clone.Merge(ctx, commit, onto)
	m.Clean = true
	return m, err
}
