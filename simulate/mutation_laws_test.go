package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// lawMutations has mutations that each break one law. They change the reconciler's input or its writes.
var lawMutations = []mutation{
	{"a pause does not wait for people", "Calm", 0, bendSpecs(func(s *rollout.Spec) {
		if s.BlueGreen != nil {
			s.BlueGreen.AutoPromotionEnabled = true
			return
		}
		for i, step := range s.Canary.Steps {
			if step.Pause != nil {
				s.Canary.Steps[i].Pause = &rollout.Pause{Duration: new(time.Second)}
			}
		}
	})},
	{"a list of steps that is edited has no gates", "People Calm", 0, func(p starting) {
		first := map[rollout.Workload]string{}
		bendSpecs(func(s *rollout.Spec) {
			if s.Canary == nil {
				return
			}
			text := dump(s.Canary.Steps)
			if first[s.Workload] = cmp.Or(first[s.Workload], text); first[s.Workload] != text {
				s.Canary.Steps = slices.DeleteFunc(s.Canary.Steps, func(step rollout.Step) bool { return step.Pause != nil })
			}
		})(p)
	}},
	{"all users' version is not stable while an old pod is left", "People Calm", 0, observesEach(reluctant)},
	{"a step gives twice its weight", "Calm", 0, bendSpecs(func(s *rollout.Spec) {
		if s.Canary == nil {
			return
		}
		for i, step := range s.Canary.Steps {
			if step.SetWeight != nil {
				s.Canary.Steps[i].SetWeight = new(min(100, 2**step.SetWeight))
			}
		}
	})},
	{"Kubernetes' template of all pods stays", "StatefulSets", 60, observesEach(oldBase)},
	{"an unseen cluster is believed", "Watches", 84, observes(func(_ starting, _ string, seen *rollout.Observed) { seen.Unseen = "" })},
	{"an object removed from Git stays", "People", 0, keep(func(rollout.Object) bool { return true })},
	{"replicas are pinned although an autoscaler scales", "Scales", 0, writes(pinned)},
	{"requested pods count as serving pods", "Calm", 0, observesEach(trustful)},
	{"a pod that serves counts for all where users are switched", "Calm", 13, observesEach(trusting)},
	{"pods of an experiment outlive it", "Experiments", 0, keep(func(o rollout.Object) bool {
		return o.Annotation(rollout.AnnotationGenerated) != ""
	})},
	{"requests to an experiment outlive it", "Experiments WeightsAndGlass", 17, writes(lingering)},
	{"an experiment runs of a workload without pods", "Experiments", 54, observesEach(staffed)},
	{"each commit is followed by each app", "Calm", 0, renders(func(_ starting, _ string, r *rollout.Render) { r.Digest = r.Commit.ID })},
	{"an abort is not read", "Calm", 27, hide(func(name string, data []byte) bool {
		return strings.Contains(name, "/promote/") && strings.Contains(string(data), "decision: abort")
	})},
	{"a field that left Git stays with its other manager", "Owners", 0, applies(sharing)},
	{"another controller's object is taken", "People", 0, func(p starting) { p.Observer = taker{p.View} }},
	{"a new process writes everything anew", "Calm", 0, newcomer},
	{"an analysis of a past release judges", "Analyses PeopleAndAnalyses", 77, func(p starting) {
		p.Analyzer = &pastLab{lab: p.u.labs[p.Name], going: map[string][]rollout.AnalysisRun{}}
	}},
	{"a watch outlives a newer push", "Decays", 52, renders(blinkered)},
	{"workloads without pods pass gates", "People PeopleAndSizes", 25, forge(func(a *appSource, s rollout.State) *rollout.Promotion {
		empty := map[rollout.Workload]string{}
		for _, pr := range s.Progress {
			if w := a.find(pr.Workload); w != nil && w.replicas != nil && *w.replicas == 0 && len(s.Progress) > 1 {
				empty[pr.Workload] = rollout.Full
			}
		}
		return &rollout.Promotion{Workloads: empty}
	})},
	{"a rename is followed", "People PeopleAndPumps", 0, forge(func(a *appSource, s rollout.State) *rollout.Promotion {
		isIt := func(w workloadSource) bool { return w.name == s.Progress[0].Workload.Name }
		if len(s.Progress) != 1 || slices.ContainsFunc(a.workloads, isIt) {
			return nil
		}
		return &rollout.Promotion{Through: rollout.Full}
	})},
	{"an app of which nothing is left is followed", "Calm", 0, filled},
	{"a folder that got another name is taken for an empty one", "People", 0, renders(forgetful)},
	{"an image that was set by hand stays", "People", 0, applies(tolerant)},
	{"a release goes on while Git's head cannot be read", "Calm", 23, func(p starting) {
		p.Renderer = &forgiving{Renderer: p.Renderer, last: map[string]*rollout.Render{}}
	}},
	{"one app's kind hides the whole cluster", "BrokenKinds", 19, observes(func(p starting, _ string, seen *rollout.Observed) {
		if p.u.unread != "" {
			seen.Unseen = "the watch of a kind fails"
		}
	})},
	{"a failure is retried at once", "API", 134, func(p starting) { p.Spread = func(time.Duration) time.Duration { return 0 } }},
	{"broken old pods stay until the new ones serve", "BrokenStable", 69, writes(strict)},
	{"an object is written under another app's namespace", "Calm", 0, writes(stray)},
	{"a freeze is not read", "Freezes", 0, hide(func(name string, _ []byte) bool { return name == rollout.FreezePath(testCluster) })},
	{"a rollback waits for the end of a freeze", "Freezes", 136, applies(frozen)},
	{"a commit that was half read is believed", "Git", 12, func(p starting) {
		p.Repository = &halfGit{Clone: p.Clone, half: map[string]bool{}}
	}},
	{"each transition is written to the workload", "Calm", 0, writes(talkative)},
}

// strict is a mutation that keeps all old pods of a Deployment at a step while an old pod is not ready.
func strict(p starting, _ string, o rollout.Object) {
	w, is := p.u.kube.WorkloadOf(o.Ref())
	d := p.u.kube.Deployments[w]
	if !is || d == nil || o.Map("spec")["minReadySeconds"] != int64(2147483646) {
		return
	}
	isBroken := slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
		return kube.VersionOf(rs.Template) != kube.VersionOf(d.Template) && rs.Ready() < rs.Replicas
	})
	if isBroken {
		limits := o.Map("spec", "strategy", "rollingUpdate")
		limits["maxUnavailable"], limits["maxSurge"] = int64(0), int64(1)
	}
}

// stray is a mutation that writes all ConfigMaps to the namespace kube-system.
func stray(_ starting, _ string, o rollout.Object) {
	if o.Kind() == "ConfigMap" {
		o.Set("kube-system", "metadata", "namespace")
	}
}

// talkative is a mutation that writes the serial number of the app's newest record to the app's workloads.
func talkative(p starting, app string, o rollout.Object) {
	if _, is := rollout.WorkloadOf(o.Ref()); is {
		o.Set(fmt.Sprint(p.u.oracle.states[app].Serial), "metadata", "labels", rollout.LabelSerial)
	}
}

// pinned is a mutation that sets replicas although Git leaves the Deployment's replicas to an autoscaler.
func pinned(_ starting, _ string, o rollout.Object) {
	if o.Kind() == "Deployment" && o.Map("spec")["replicas"] == nil {
		o.Map("spec")["replicas"] = int64(2)
	}
}

// halfGit is a mutation that shows a commit as empty if the fetch of the commit has failed.
type halfGit struct {
	*memgit.Clone
	half map[string]bool
}

func (g *halfGit) Bring(ctx context.Context, ids []string) ([]string, error) {
	gone, err := g.Clone.Bring(ctx, ids)
	if err != nil {
		for _, id := range ids {
			g.half[id] = true
		}
		return nil, nil
	}
	return gone, err
}

func (g *halfGit) Held(id string) (reconciler.Snapshot, bool) {
	if c := g.Server.Commits[id]; c != nil && g.half[id] && !g.Local[id] {
		return emptied{&memgit.Snapshot{}, c.Commit()}, true
	}
	return g.Clone.Held(id)
}

// emptied is a commit without files.
type emptied struct {
	rollout.Tree
	commit rollout.Commit
}

func (e emptied) Commit() rollout.Commit { return e.commit }

// taker is a mutation that hides other owners of objects.
type taker struct{ *View }

func (taker) OtherOwners(context.Context, string, []rollout.Object, time.Time) ([]rollout.Foreign, error) {
	return nil, nil
}

// newcomer is a mutation that makes each process write each object once, even if the cluster already has the desired content.
func newcomer(p starting) {
	known := map[rollout.Ref]bool{}
	applies(func(ctx context.Context, p starting, app string, objects []rollout.Object) error {
		for _, o := range objects {
			if live := p.View.cluster.objects[o.Ref()]; live != nil && !known[o.Ref()] {
				live.digest = ""
			}
			known[o.Ref()] = true
		}
		return p.View.Apply(ctx, app, objects)
	})(p)
}

// reluctant is a mutation that shows a pod of each old version during the whole promotion.
func reluctant(p starting, app string, w *rollout.ObservedWorkload) {
	if s := p.u.oracle.states[app]; s.Phase != rollout.Promoting || s.Stable == nil {
		return
	}
	w.Complete = false
	for i := range w.Revisions {
		if r := &w.Revisions[i]; !r.Current && r.Pods == 0 {
			r.Pods, r.Desired = 1, 1
		}
	}
}

// lingering is a mutation that keeps the old backends of each written HTTPRoute.
func lingering(p starting, _ string, o rollout.Object) {
	backends := func(route rollout.Object) (rule map[string]any, all []any) {
		rules, _ := route.Map("spec")["rules"].([]any)
		if len(rules) == 0 {
			return nil, nil
		}
		rule = rules[len(rules)-1].(map[string]any)
		all, _ = rule["backendRefs"].([]any)
		return rule, all
	}
	rule, all := backends(o)
	_, before := backends(p.u.kube.Routes[o.Ref()])
	for _, b := range before {
		isIt := func(o any) bool { return o.(map[string]any)["name"] == b.(map[string]any)["name"] }
		if rule != nil && !slices.ContainsFunc(all, isIt) {
			all = append(all, b)
			rule["backendRefs"] = all
		}
	}
}

// staffed is a mutation that shows at least one replica of a workload during an experiment.
func staffed(p starting, app string, w *rollout.ObservedWorkload) {
	s := p.u.oracle.states[app]
	if len(s.Progress) > 0 && s.Stable != nil && strings.HasPrefix(s.Progress[0].Name, "experiment ") {
		w.Replicas = max(w.Replicas, 1)
	}
}

// trustful is a mutation that shows all desired pods of a workload as existing and ready.
func trustful(p starting, _ string, w *rollout.ObservedWorkload) {
	w.Complete = w.Synced
	for i := range w.Revisions {
		r := &w.Revisions[i]
		r.ReadySince = slices.Repeat([]time.Time{p.u.kube.Now.Add(-time.Hour)}, r.Desired)
		r.Pods, r.Problem = r.Desired, ""
	}
}

// trusting is a mutation that, before a switch, shows all pods of a version as ready if one pod is ready.
func trusting(p starting, app string, w *rollout.ObservedWorkload) {
	if !slices.ContainsFunc(p.u.oracle.states[app].Progress, func(pr rollout.Progress) bool { return pr.Name == "scale up" }) {
		return
	}
	for i := range w.Revisions {
		r := &w.Revisions[i]
		for n := len(r.ReadySince); r.Current && n > 0 && n < r.Desired; n++ {
			r.ReadySince = append(r.ReadySince, r.ReadySince[0])
		}
	}
}

// keeper is a mutation that reports some objects as deleted, but does not delete them.
type keeper struct {
	*View
	keeps func(rollout.Object) bool
}

func keep(keeps func(rollout.Object) bool) wrap {
	return func(p starting) { p.Applier = &keeper{p.View, keeps} }
}

func (k *keeper) Prune(ctx context.Context, app string, candidates []rollout.Ref) ([]rollout.Ref, error) {
	isKept := func(ref rollout.Ref) bool { o := k.cluster.objects[ref]; return o != nil && k.keeps(o.body) }
	var kept []rollout.Ref
	rest := slices.DeleteFunc(slices.Clone(candidates), func(ref rollout.Ref) bool {
		if isKept(ref) {
			kept = append(kept, ref)
		}
		return isKept(ref)
	})
	gone, err := k.View.Prune(ctx, app, rest)
	return append(gone, kept...), err
}

// forgiving is a mutation that returns the last successful render of an app if the current render fails.
type forgiving struct {
	reconciler.Renderer
	last map[string]*rollout.Render
}

func (f *forgiving) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	made, err := f.Renderer.Render(tree, app, commit)
	if last := f.last[app.Name]; err != nil && last != nil {
		return last, nil
	}
	f.last[app.Name] = made
	return made, err
}

// filled is a mutation that adds an earlier object to the render of an app if the folder no longer has objects.
func filled(p starting) {
	last := map[string]rollout.Object{}
	renders(func(_ starting, app string, r *rollout.Render) {
		if len(r.Objects) > 0 {
			last[app] = r.Objects[0]
		} else {
			r.Objects = []rollout.Object{last[app]}
		}
	})(p)
}

// forgetful is a mutation that shows a renamed folder without objects.
func forgetful(p starting, app string, r *rollout.Render) {
	if p.u.ids[app] != app {
		*r = rollout.Render{Commit: r.Commit, Digest: r.Digest}
	}
}

// tolerant is a mutation that does not write a Deployment while its image in the cluster was set by hand.
func tolerant(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	return p.View.Apply(ctx, app, slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool {
		d := p.u.kube.Deployments[rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}]
		return o.Kind() == "Deployment" && d != nil && kube.VersionOf(d.Template) == byHand
	}))
}

// hidingGit is a mutation that hides some files in Git.
type hidingGit struct {
	*memgit.Clone
	hides func(name string, data []byte) bool
}

func hide(hides func(name string, data []byte) bool) wrap {
	return func(p starting) { p.Repository = &hidingGit{p.Clone, hides} }
}

func (g *hidingGit) Held(id string) (reconciler.Snapshot, bool) {
	tree, held := g.Clone.Held(id)
	return hiding{tree, g.hides}, held
}

type hiding struct {
	reconciler.Snapshot
	hides func(name string, data []byte) bool
}

func (s hiding) Lookup(name string) (rollout.Entry, bool, error) {
	e, found, err := s.Snapshot.Lookup(name)
	if found && e.Kind == rollout.File {
		if data, err := s.Snapshot.ReadBlob(e.ID); err == nil && s.hides(name, data) {
			return rollout.Entry{}, false, nil
		}
	}
	return e, found, err
}

// frozen is a mutation that, during a freeze, delays each rollback until its record is in Git.
func frozen(ctx context.Context, p starting, app string, objects []rollout.Object) error {
	if p.u.head().isFrozen {
		return patient(ctx, p, app, objects)
	}
	return p.View.Apply(ctx, app, objects)
}

// forger is a mutation that shows promotion files that no user has pushed.
type forger struct {
	*memgit.Clone
	u   *universe
	key func(*appSource, rollout.State) *rollout.Promotion
}

func forge(key func(*appSource, rollout.State) *rollout.Promotion) wrap {
	return func(p starting) { p.Repository = &forger{p.Clone, p.u, key} }
}

func (g *forger) Held(id string) (reconciler.Snapshot, bool) {
	tree, held := g.Clone.Held(id)
	return forged{tree, g, id}, held
}

type forged struct {
	reconciler.Snapshot
	*forger
	commit string
}

const forgedKey = "forged "

func (f forged) Lookup(name string) (rollout.Entry, bool, error) {
	e, found, err := f.Snapshot.Lookup(name)
	app, isKey := strings.CutPrefix(name, strings.TrimSuffix(rollout.PromotionPath(testCluster, "APP"), "APP.yaml"))
	app = strings.TrimSuffix(app, ".yaml")
	s := f.u.oracle.states[app]
	a := f.u.appIn(f.commit, app)
	if !isKey || a == nil || s.Release == nil || s.Stable == nil || len(s.Progress) == 0 {
		return e, found, err
	}
	key := f.key(a, s)
	if key == nil || key.Through == "" && len(key.Workloads) == 0 {
		return e, found, err
	}
	key.Release, key.Decision = s.Release.Hash, rollout.Promote
	data, err := key.Encode()
	return rollout.Entry{Name: app + ".yaml", Kind: rollout.File, ID: forgedKey + string(data)}, true, err
}

func (f forged) ReadBlob(id string) ([]byte, error) {
	if data, is := strings.CutPrefix(id, forgedKey); is {
		return []byte(data), nil
	}
	return f.Snapshot.ReadBlob(id)
}
