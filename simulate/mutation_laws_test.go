package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// lawMutations each break one law by a wrapper that changes the program's view of its world.
var lawMutations = []mutation{
	{"a pause does not wait for people", []string{"Calm"}, bendSpecs(func(_ *bender, s *rollout.Spec) {
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
	{"a list of steps that is edited has no gates", []string{"People", "Calm"}, bendSpecs(func(b *bender, s *rollout.Spec) {
		if s.Canary == nil {
			return
		}
		text := dump(s.Canary.Steps)
		if first := b.first[s.Workload]; first == "" {
			b.first[s.Workload] = text
		} else if first != text {
			s.Canary.Steps = slices.DeleteFunc(s.Canary.Steps, func(step rollout.Step) bool { return step.Pause != nil })
		}
	})},
	{"all users' version is not stable while an old pod is left", []string{"People", "Calm"}, observe(reluctant)},
	{"a step gives twice its weight", []string{"Calm"}, bendSpecs(func(_ *bender, s *rollout.Spec) {
		if s.Canary == nil {
			return
		}
		for i, step := range s.Canary.Steps {
			if step.SetWeight != nil {
				s.Canary.Steps[i].SetWeight = new(min(100, 2**step.SetWeight))
			}
		}
	})},
	{"Kubernetes' template of all pods stays", []string{"StatefulSets"}, observe(func(_ *universe, _ string, w *rollout.ObservedWorkload) {
		for i, r := range w.Revisions {
			w.Revisions[i].Base = r.Base && !r.Current
		}
	})},
	{"an unseen cluster is believed", []string{"Watches"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Observer = believer{p.View}
	}},
	{"an object removed from Git stays", []string{"People"}, keep(func(rollout.Object) bool { return true })},
	{"replicas are pinned although an autoscaler scales", []string{"Scales"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &pinnedCluster{View: p.View}
	}},
	{"requested pods count as serving pods", []string{"Calm"}, observe(trustful)},
	{"a pod that serves counts for all where users are switched", []string{"Calm"}, observe(trusting)},
	{"pods of an experiment outlive it", []string{"Experiments"}, keep(func(o rollout.Object) bool {
		return o.Annotation(rollout.AnnotationGenerated) != ""
	})},
	{"an experiment runs of a workload without pods", []string{"Experiments"}, observe(staffed)},
	{"each commit is followed by each app", []string{"Calm"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = restless{o.Renderer}
	}},
	{"an abort is not read", []string{"Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Repository = &hidingGit{p.Clone, func(name string, data []byte) bool {
			return strings.Contains(name, "/promote/") && strings.Contains(string(data), "decision: abort")
		}}
	}},
	{"a field that left Git stays with its other manager", []string{"Owners"}, func(u *universe, p *Process, o *reconciler.Options) {
		o.Applier = &sharingCluster{p.View, u}
	}},
	{"another controller's object is taken", []string{"People"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Observer = taker{p.View}
	}},
	{"a new process writes everything anew", []string{"Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &newcomer{p.View, map[rollout.Ref]bool{}}
	}},
	{"an analysis of a past release judges", []string{"Analyses", "PeopleAndAnalyses"}, func(u *universe, p *Process, o *reconciler.Options) {
		o.Analyzer = &pastLab{lab: u.labs[p.Name], going: map[string][]rollout.AnalysisRun{}}
	}},
	{"workloads without pods pass gates", []string{"People", "PeopleAndSizes"}, forge(func(a *appSource, s rollout.State) *rollout.Promotion {
		empty := map[rollout.Workload]string{}
		for _, pr := range s.Progress {
			if w := a.find(pr.Workload); w != nil && w.replicas != nil && *w.replicas == 0 && len(s.Progress) > 1 {
				empty[pr.Workload] = rollout.Full
			}
		}
		return &rollout.Promotion{Workloads: empty}
	})},
	{"a rename is followed", []string{"People", "PeopleAndPumps"}, forge(func(a *appSource, s rollout.State) *rollout.Promotion {
		isIt := func(w workloadSource) bool { return w.name == s.Progress[0].Workload.Name }
		if len(s.Progress) != 1 || slices.ContainsFunc(a.workloads, isIt) {
			return nil
		}
		return &rollout.Promotion{Through: rollout.Full}
	})},
	{"an app of which nothing is left is followed", []string{"Calm"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = filler{o.Renderer, map[string]rollout.Object{}}
	}},
	{"a folder that got another name is taken for an empty one", []string{"People"}, func(u *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = forgetful{o.Renderer, u.ids}
	}},
	{"an image that was set by hand stays", []string{"People"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &tolerantCluster{View: p.View}
	}},
	{"a release goes on while Git's head cannot be read", []string{"Calm"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = &forgiving{Renderer: o.Renderer, last: map[string]*rollout.Render{}}
	}},
	{"one app's kind hides the whole cluster", []string{"BrokenKinds"}, func(u *universe, _ *Process, o *reconciler.Options) {
		o.Observer = allBlind{o.Observer, u}
	}},
	{"a failure is retried at once", []string{"API"}, func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Spread = func(time.Duration) time.Duration { return 0 }
	}},
	{"broken old pods stay until the new ones serve", []string{"BrokenStable"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &strictCluster{View: p.View}
	}},
	{"an object is written under another app's namespace", []string{"Calm"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Applier = &strayCluster{View: p.View}
	}},
	{"a freeze is not read", []string{"Freezes"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Repository = &hidingGit{p.Clone, func(name string, _ []byte) bool { return name == rollout.FreezePath(testCluster) }}
	}},
	{"a rollback waits for the end of a freeze", []string{"Freezes"}, func(u *universe, p *Process, o *reconciler.Options) {
		o.Applier = &frozenCluster{patientCluster{View: p.View, u: u}}
	}},
	{"a commit that was half read is believed", []string{"Git"}, func(_ *universe, p *Process, o *reconciler.Options) {
		o.Repository = &halfGit{Clone: p.Clone, half: map[string]bool{}}
	}},
	{"each transition is written to the workload", []string{"Calm"}, func(u *universe, p *Process, o *reconciler.Options) {
		o.Applier = &wordyCluster{View: p.View, u: u}
	}},
}

// halfBlind hides the workloads of the app whose kind cannot be watched.
type halfBlind struct {
	reconciler.Observer
	u *universe
}

func (b halfBlind) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	out := b.Observer.Observe(app, workloads, routes)
	if app == b.u.unread {
		out.Unseen = "the watch of its kind fails"
	}
	return out
}

// allBlind hides the workloads of all apps while one app's kind cannot be watched.
type allBlind struct {
	reconciler.Observer
	u *universe
}

func (b allBlind) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	out := b.Observer.Observe(app, workloads, routes)
	if b.u.unread != "" {
		out.Unseen = "the watch of a kind fails"
	}
	return out
}

// strictCluster lets no old pod go at a step while one of them is not ready.
type strictCluster struct{ *View }

func (c *strictCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		w, is := c.cluster.Kube.WorkloadOf(o.Ref())
		d := c.cluster.Kube.Deployments[w]
		if !is || d == nil || o.Map("spec")["minReadySeconds"] != int64(2147483646) {
			continue
		}
		isBroken := slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
			return kube.VersionOf(rs.Template) != kube.VersionOf(d.Template) && rs.Ready() < rs.Replicas
		})
		if isBroken {
			objects[i] = o.Copy()
			objects[i].Map("spec", "strategy", "rollingUpdate")["maxUnavailable"] = int64(0)
			objects[i].Map("spec", "strategy", "rollingUpdate")["maxSurge"] = int64(1)
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// strayCluster writes ConfigMaps under the name of another namespace.
type strayCluster struct{ *View }

func (c *strayCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		if o.Kind() == "ConfigMap" {
			objects[i] = o.Copy()
			objects[i].Set("kube-system", "metadata", "namespace")
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// halfGit holds a commit without its files after a failed read.
type halfGit struct {
	*Clone
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
	if c := g.server.commits[id]; c != nil && g.half[id] && !g.local[id] {
		empty := *c
		empty.files, empty.tree = nil, nil
		return snapshot{&empty}, true
	}
	return g.Clone.Held(id)
}

// wordyCluster writes each serial number to the workloads.
type wordyCluster struct {
	*View
	u *universe
}

func (c *wordyCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		if _, is := rollout.WorkloadOf(o.Ref()); is {
			objects[i] = o.Copy()
			objects[i].Set(fmt.Sprint(c.u.oracle.states[app].Serial), "metadata", "labels", rollout.LabelSerial)
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// taker hides other controllers.
type taker struct{ *View }

func (taker) OtherOwners(context.Context, string, []rollout.Object, time.Time) ([]rollout.Foreign, error) {
	return nil, nil
}

// newcomer writes its first objects over anything that exists.
type newcomer struct {
	*View
	known map[rollout.Ref]bool
}

func (n *newcomer) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	n.refresh()
	for _, o := range objects {
		if !n.known[o.Ref()] {
			n.known[o.Ref()] = true
			delete(n.digests, o.Ref())
		}
	}
	return n.View.Apply(ctx, app, objects)
}

// bender changes the content of documents.
type bender struct {
	reconciler.Renderer
	bend  func(*bender, *rollout.Spec)
	first map[rollout.Workload]string // the first steps
}

func bendSpecs(bend func(*bender, *rollout.Spec)) func(*universe, *Process, *reconciler.Options) {
	return func(_ *universe, _ *Process, o *reconciler.Options) {
		o.Renderer = &bender{o.Renderer, bend, map[rollout.Workload]string{}}
	}
}

func (b *bender) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	r, err := b.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	out := *r
	out.Specs = slices.Clone(r.Specs)
	for i := range out.Specs {
		s := &out.Specs[i]
		if s.Canary != nil {
			c := *s.Canary
			c.Steps = slices.Clone(c.Steps)
			s.Canary = &c
		} else {
			b := *s.BlueGreen
			s.BlueGreen = &b
		}
		b.bend(b, s)
	}
	return &out, nil
}

// observer shows a process a changed cluster.
type observer struct {
	*View
	u    *universe
	bend func(u *universe, app string, w *rollout.ObservedWorkload)
}

func observe(bend func(*universe, string, *rollout.ObservedWorkload)) func(*universe, *Process, *reconciler.Options) {
	return func(u *universe, p *Process, o *reconciler.Options) { o.Observer = &observer{p.View, u, bend} }
}

func (o *observer) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	out := o.View.Observe(app, workloads, routes)
	for w, live := range out.Workloads {
		live.Revisions = slices.Clone(live.Revisions)
		o.bend(o.u, app, &live)
		out.Workloads[w] = live
	}
	return out
}

// believer hides that watches are broken.
type believer struct{ *View }

func (b believer) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	out := b.View.Observe(app, workloads, routes)
	out.Unseen = ""
	return out
}

// reluctant shows a pod of the old version during the whole promotion.
func reluctant(u *universe, app string, w *rollout.ObservedWorkload) {
	if s := u.oracle.states[app]; s.Phase != rollout.Promoting || s.Stable == nil {
		return
	}
	w.Complete = false
	for i := range w.Revisions {
		if r := &w.Revisions[i]; !r.Current && r.Pods == 0 {
			r.Pods, r.Desired = 1, 1
		}
	}
}

// staffed shows at least one replica of a workload with an experiment.
func staffed(u *universe, app string, w *rollout.ObservedWorkload) {
	s := u.oracle.states[app]
	if len(s.Progress) > 0 && s.Stable != nil && strings.HasPrefix(s.Progress[0].Name, "experiment ") {
		w.Replicas = max(w.Replicas, 1)
	}
}

// trustful shows a Deployment's desired pods as existing ones.
func trustful(u *universe, _ string, w *rollout.ObservedWorkload) {
	w.Complete = w.Synced
	for i := range w.Revisions {
		r := &w.Revisions[i]
		r.ReadySince, r.Problem = nil, ""
		for range r.Desired {
			r.ReadySince = append(r.ReadySince, u.kube.Now.Add(-time.Hour))
		}
		r.Pods = r.Desired
	}
}

// trusting shows one ready pod as all pods of its version before a switch.
func trusting(u *universe, app string, w *rollout.ObservedWorkload) {
	if !slices.ContainsFunc(u.oracle.states[app].Progress, func(pr rollout.Progress) bool { return pr.Name == "scale up" }) {
		return
	}
	for i := range w.Revisions {
		r := &w.Revisions[i]
		for n := len(r.ReadySince); r.Current && n > 0 && n < r.Desired; n++ {
			r.ReadySince = append(r.ReadySince, r.ReadySince[0])
		}
	}
}

// keeper deletes no object of a kind, and reports it as deleted.
type keeper struct {
	*View
	keeps func(rollout.Object) bool
}

func keep(keeps func(rollout.Object) bool) func(*universe, *Process, *reconciler.Options) {
	return func(_ *universe, p *Process, o *reconciler.Options) { o.Applier = &keeper{p.View, keeps} }
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

// pinnedCluster writes the first number of replicas.
type pinnedCluster struct{ *View }

func (c *pinnedCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		if o.Kind() == "Deployment" && o.Map("spec")["replicas"] == nil {
			objects[i] = o.Copy()
			objects[i].Map("spec")["replicas"] = int64(2)
		}
	}
	return c.View.Apply(ctx, app, objects)
}

// restless takes each commit for a change.
type restless struct{ reconciler.Renderer }

func (r restless) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	made, err := r.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	out := *made
	out.Digest = commit.ID
	return &out, nil
}

// forgiving renders the last valid content.
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

// filler shows one object of an app that was emptied.
type filler struct {
	reconciler.Renderer
	last map[string]rollout.Object
}

func (f filler) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	made, err := f.Renderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	if len(made.Objects) > 0 {
		f.last[app.Name] = made.Objects[0]
		return made, nil
	}
	out := *made
	out.Objects = []rollout.Object{f.last[app.Name]}
	return &out, nil
}

// forgetful shows a renamed folder as empty.
type forgetful struct {
	reconciler.Renderer
	ids map[string]string // of apps, by all their names
}

func (f forgetful) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	made, err := f.Renderer.Render(tree, app, commit)
	if err != nil || f.ids[app.Name] == app.Name {
		return made, err
	}
	return &rollout.Render{Commit: made.Commit, Digest: made.Digest}, nil
}

// tolerantCluster leaves a Deployment with an image set by hand alone.
type tolerantCluster struct{ *View }

func (c *tolerantCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	return c.View.Apply(ctx, app, slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool {
		d := c.cluster.Kube.Deployments[rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}]
		return o.Kind() == "Deployment" && d != nil && kube.VersionOf(d.Template) == byHand
	}))
}

// hidingGit hides files.
type hidingGit struct {
	*Clone
	hides func(name string, data []byte) bool
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

// frozenCluster applies rollbacks only outside a freeze.
type frozenCluster struct{ patientCluster }

func (c *frozenCluster) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	if c.u.head().isFrozen {
		return c.patientCluster.Apply(ctx, app, objects)
	}
	return c.View.Apply(ctx, app, objects)
}

// forger shows promotions that no user has written.
type forger struct {
	*Clone
	u   *universe
	key func(*appSource, rollout.State) *rollout.Promotion
}

func forge(key func(*appSource, rollout.State) *rollout.Promotion) func(*universe, *Process, *reconciler.Options) {
	return func(u *universe, p *Process, o *reconciler.Options) { o.Repository = &forger{p.Clone, u, key} }
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
