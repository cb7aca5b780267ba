package simulate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// mutation breaks a rule of the reconciler by a wrapper, to check that the simulator notices.
type mutation struct {
	name   string
	worlds []string // the worlds to search, in order
	wrap   func(u *universe, p *Process, o *reconciler.Options)
}

var mutations = []mutation{
	{"an advance is applied before it is pushed", []string{"Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Repository = &lateGit{Clone: p.Clone}
	}},
	{"a push that failed is taken for one that succeeded", []string{"Git"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Repository = &deafGit{Clone: p.Clone}
	}},
	{"a push does not compare where the branch is", []string{"Pair", "Eight"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Repository = &bluntGit{Clone: p.Clone}
	}},
	{"a rollback waits until Git has it", []string{"Git", "Calm"}, func(u *universe, p *Process, o *reconciler.Options) {
		o.Applier = &patientCluster{View: p.View, u: u}
	}},
	{"pods go before Services do", []string{"Calm", "API"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &hastyCluster{View: p.View}
	}},
	{"a pod counts as ready as soon as it exists", []string{"Calm", "Kills"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Observer = &hopefulCluster{View: p.View}
	}},
	{"the hold is left out", []string{"Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &looseCluster{View: p.View}
	}},
	{"requests follow pods that are not ready yet", []string{"Calm", "Kills"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Observer = &eagerCluster{View: p.View}
	}},
	{"pods go before proxies know that they get no requests", []string{"Calm", "Crashes"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = hurried{o.Renderer}
	}},
	{"whatever Git is at, everything waits for it", []string{"Pumps", "SlowApps"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &barrier{View: p.View, process: p}
	}},
	{"a proposal stays, whatever becomes of main", []string{"Rewrites", "Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Past = &contentMerger{Clone: p.Clone}
	}},
	{"a StatefulSet's partition is one too low", []string{"StatefulSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &lowCluster{View: p.View}
	}},
	{"all users reach a version for matched users", []string{"StatefulSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &openCluster{View: p.View}
	}},
	{"a CloneSet's partition is one too low", []string{"CloneSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &lowCluster{View: p.View}
	}},
	{"the partition of Kruise's DaemonSet is one too low", []string{"KruisesDaemonSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &lowCluster{View: p.View}
	}},
	{"the partition of Kruise's StatefulSet is one too low", []string{"KruisesStatefulSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &lowCluster{View: p.View}
	}},
	{"the partition of a kind of the configuration lets one pod too many go", []string{"OwnKinds"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &lowCluster{View: p.View}
	}},
	{"evictions of Kruise's StatefulSet are left out", []string{"KruisesStatefulSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &sparingCluster{View: p.View}
	}},
	{"CloneSet's template of all pods stays", []string{"CloneSets", "CalmSets"}, observe(func(_ *universe, _ string, w *rollout.ObservedWorkload) {
		for i, r := range w.Revisions {
			w.Revisions[i].Base = r.Base && !r.Current
		}
	})},
	{"evictions are left out", []string{"StatefulSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &sparingCluster{View: p.View}
	}},
	{"a DaemonSet loses two pods where one is to go", []string{"DaemonSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &greedyCluster{View: p.View}
	}},
	{"a pod made by scaling stays, with rebalance", []string{"StatefulSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &contentCluster{View: p.View}
	}},
	{"nodes are taken in any order", []string{"DaemonSets"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &fickleCluster{View: p.View}
	}},
	{"a Job that has failed is made again", []string{"Hooks"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Jobs = hopefulJobs{p.View}
	}},
	{"a Job that has failed is taken for one that has ended well", []string{"Hooks"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Jobs = kindJobs{p.View}
	}},
	{"a Job is lost at its app's new name", []string{"PeopleAndHooks"}, func(u *universe, p *Process, o *reconciler.Options) {
		o.Jobs = namedJobs{p.View, u}
	}},
	{"a Job is made before it is on record", []string{"Hooks"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Jobs = hastyJobs{p.View}
	}},
	{"hooks before a release are left out", []string{"Hooks"}, withoutHooks("before")},
	{"hooks after a release are left out", []string{"Hooks"}, withoutHooks("after")},
	{"hooks after a rollback are left out", []string{"Hooks"}, withoutHooks("abort")},
	{"a hook that has changed alone is left out", []string{"Hooks"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = sameHooks{o.Renderer}
	}},
	{"without a Rollout document there are no hooks", []string{"PlainHooks"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = unhooked{o.Renderer}
	}},
	{"an object is written in every pass", []string{"Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &busyCluster{View: p.View}
	}},
}

// enough is the largest number of seeds per mutation.
const enough = 200

// noticed has the seed for each mutation that none of the first ten seeds notices; it runs first. When it stops
// noticing because runs have changed, all seeds run, and the test prints a new one.
var noticed = map[string]int{
	"a failure is retried at once":                                          134,
	"broken old pods stay until the new ones serve":                         69,
	"one app's kind hides the whole cluster":                                19,
	"a rollback waits for the end of a freeze":                              136,
	"a commit that was half read is believed":                               12,
	"an experiment runs of a workload without pods":                         54,
	"a Job is lost at its app's new name":                                   60,
	"CloneSet's template of all pods stays":                                 50,
	"whatever Git is at, everything waits for it":                           15,
	"an unseen cluster is believed":                                         84,
	"an analysis of a past release judges":                                  77,
	"a pod made by scaling stays, with rebalance":                           69,
	"Kubernetes' template of all pods stays":                                60,
	"a proposal stays, whatever becomes of main":                            58,
	"pods go before Services do":                                            29,
	"an abort is not read":                                                  27,
	"the partition of a kind of the configuration lets one pod too many go": 26,
	"workloads without pods pass gates":                                     25,
	"a release goes on while Git's head cannot be read":                     23,
	"evictions are left out":                                                18,
	"evictions of Kruise's StatefulSet are left out":                        18,
	"a StatefulSet's partition is one too low":                              15,
	"hooks after a rollback are left out":                                   16,
	"a pod that serves counts for all where users are switched":             13,
	"a rollback waits until Git has it":                                     13,
	"pods go before proxies know that they get no requests":                 11,
	"requests follow pods that are not ready yet":                           11,
	"a pod counts as ready as soon as it exists":                            11,
}

// TestMutations breaks the reconciler in each of these ways. One of the first 200 seeds must notice. The table is in
// docs/simulator.md.
func TestMutations(t *testing.T) {
	for _, m := range slices.Concat(mutations, lawMutations) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			seeds := make([]int, 0, enough+1)
			if n := noticed[m.name]; n > 0 {
				seeds = append(seeds, n)
			}
			for i := range enough {
				seeds = append(seeds, i+1)
			}
			for _, seed := range seeds {
				i := seed - 1
				w := m.worlds[i%len(m.worlds)]
				at := slices.IndexFunc(worlds, func(x world) bool { return x.name == w })
				u := live(uint64(i/len(m.worlds))+1, worlds[at].chaos, m, false)
				if u.failure != "" {
					t.Logf("caught by seed %d: %s", seed, u.failure)
					return
				}
			}
			t.Errorf("not caught by %d seeds", enough)
		})
	}
}

// lateGit reports a push at once, and pushes before the next fetch.
type lateGit struct {
	*Clone
	owed []move
}

func (g *lateGit) Fetch(ctx context.Context) (rollout.Heads, error) {
	if len(g.owed) > 0 {
		_ = g.server.receive(g.name, g.owed)
		g.owed = nil
	}
	return g.Clone.Fetch(ctx)
}

func (g *lateGit) Push(_ context.Context, updates []rollout.Update) (map[string]string, error) {
	made := map[string]string{}
	for _, u := range updates {
		m, err := g.prepare(u)
		if err != nil {
			return nil, err
		}
		if m.to != "" {
			made[u.Branch] = m.to
			g.local[m.to] = true
		}
		g.owed = append(g.owed, m)
	}
	return made, nil
}

// deafGit hides failed pushes.
type deafGit struct{ *Clone }

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

// bluntGit pushes without comparing the branch.
type bluntGit struct{ *Clone }

func (g *bluntGit) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	updates = slices.Clone(updates)
	for i := range updates {
		updates[i].Old = g.server.Head(updates[i].Branch)
		if updates[i].Branch == stateBranch {
			updates[i].Parent = updates[i].Old
		}
	}
	return g.Clone.Push(ctx, updates)
}

// patientCluster applies only objects that Git already asks for.
type patientCluster struct {
	*View
	u *universe
}

func (c *patientCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	o := c.u.oracle
	if slices.ContainsFunc(objects, func(object rollout.Object) bool { return o.goesBack(app, o.states[app], object) }) {
		return nil
	}
	return c.View.Apply(ctx, app, objects)
}

// lowCluster lowers each partition by one pod.
type lowCluster struct{ *View }

func (c *lowCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		path, more := "spec.updateStrategy.rollingUpdate.partition", int64(-1)
		if p, _ := rollout.FindPartitioned(ownKinds, o.APIVersion(), o.Kind()); p != nil {
			path = p.Partition
			if p.CountsNew {
				more = 1
			}
		}
		if n, held := rollout.In(o, path).(int64); held && n > 0 {
			keys := strings.Split(path, ".")
			objects[i] = o.Copy()
			objects[i].Map(keys[:len(keys)-1]...)[keys[len(keys)-1]] = n + more
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// openCluster removes the pins of all Services except canary ones.
type openCluster struct{ *View }

func (c *openCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		if o.Kind() == "Service" && !strings.HasSuffix(o.Name(), "-canary") {
			objects[i] = o.Copy()
			delete(objects[i].Map("spec", "selector"), rollout.LabelRevision)
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// sparingCluster deletes no pod.
type sparingCluster struct{ *View }

func (c *sparingCluster) Evict(context.Context, string, rollout.Pod) error { return nil }

// contentCluster deletes no ready pod.
type contentCluster struct{ *View }

func (c *contentCluster) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	if pod.Ready {
		return nil
	}
	return c.View.Evict(ctx, namespace, pod)
}

// greedyCluster deletes one more pod.
type greedyCluster struct{ *View }

func (c *greedyCluster) Evict(ctx context.Context, namespace string, pod rollout.Pod) error {
	for _, w := range c.cluster.Kube.Observe().Workloads {
		for _, r := range w.Revisions {
			i := slices.IndexFunc(r.Members, func(p rollout.Pod) bool { return p.UID == pod.UID })
			j := slices.IndexFunc(r.Members, func(p rollout.Pod) bool { return p.UID != pod.UID && !p.Terminating })
			if i >= 0 && j >= 0 {
				if err := c.View.Evict(ctx, namespace, r.Members[j]); err != nil {
					return err
				}
			}
		}
	}
	return c.View.Evict(ctx, namespace, pod)
}

// barrier stops all apps during fetches and pushes.
type barrier struct {
	*View
	process *Process
}

func (b *barrier) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	if len(b.process.threads) > 1 {
		return errors.New("all apps wait for Git")
	}
	return b.View.Apply(ctx, app, objects)
}

// hastyCluster applies Services one pass after their Deployments.
type hastyCluster struct{ *View }

func (c *hastyCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	var first, last []rollout.Object
	for _, o := range objects {
		if o.Kind() == "Service" {
			last = append(last, o)
		} else {
			first = append(first, o)
		}
	}
	before := c.cluster.writes
	if err := c.View.Apply(ctx, app, first); err != nil || c.cluster.writes != before {
		return err
	}
	return c.View.Apply(ctx, app, last)
}

// hopefulCluster shows each pod as ready.
type hopefulCluster struct{ *View }

func (c *hopefulCluster) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	out := c.View.Observe(app, workloads, routes)
	for w, live := range out.Workloads {
		live.Revisions = slices.Clone(live.Revisions)
		for i, r := range live.Revisions {
			live.Revisions[i].ReadySince = nil
			for range r.Pods {
				live.Revisions[i].ReadySince = append(live.Revisions[i].ReadySince, c.cluster.Kube.Now.Add(-time.Hour))
			}
		}
		out.Workloads[w] = live
	}
	return out
}

// eagerCluster shows the newest version's pods as ready once they exist, and its endpoints as known, so that requests
// are routed there.
type eagerCluster struct{ *View }

func (c *eagerCluster) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	out := c.View.Observe(app, workloads, routes)
	for w, live := range out.Workloads {
		if c.cluster.Kube.Routes[rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: w.Namespace, Name: w.Name}] == nil {
			continue
		}
		live.Revisions = slices.Clone(live.Revisions)
		for i, r := range live.Revisions {
			for r.Current && len(live.Revisions[i].ReadySince) < r.Pods {
				live.Revisions[i].ReadySince = append([]time.Time{c.cluster.Kube.Now.Add(-time.Hour)}, live.Revisions[i].ReadySince...)
			}
		}
		out.Workloads[w] = live
	}
	return out
}

func (c *eagerCluster) Serves(context.Context, rollout.Ref, string) (bool, error) { return true, nil }

// hurried waits for no proxy, and keeps no pod longer than necessary.
type hurried struct{ reconciler.Renderer }

func (h hurried) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	r, err := h.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	out := *r
	out.Specs = slices.Clone(r.Specs)
	for i, spec := range out.Specs {
		if spec.Canary == nil || spec.Canary.Traffic == nil {
			continue
		}
		c, t := *spec.Canary, *spec.Canary.Traffic
		t.Settle, c.AbortScaleDownDelaySeconds, c.ScaleDownDelaySeconds = 0, 0, 0
		c.Traffic, out.Specs[i].Canary = &t, &c
	}
	return &out, nil
}

// looseCluster applies Deployments without the hold.
type looseCluster struct{ *View }

func (c *looseCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		if n, _ := o.Map("spec")["minReadySeconds"].(int64); n > 1<<30 {
			objects[i] = o.Copy()
			objects[i].Map("spec")["minReadySeconds"] = int64(0)
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// busyCluster shows each object as changed.
type busyCluster struct{ *View }

func (c *busyCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	c.refresh()
	for _, o := range objects {
		if o.Kind() == "ConfigMap" {
			delete(c.digests, o.Ref())
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// contentMerger shows each proposal as mergeable.
type contentMerger struct{ *Clone }

func (c *contentMerger) Merge(ctx context.Context, commit, onto string) (rollout.Merge, error) {
	m, err := c.Clone.Merge(ctx, commit, onto)
	m.Clean = true
	return m, err
}
