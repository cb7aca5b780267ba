package strategies_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// source is the content of the users' branch at one commit.
type source struct {
	workloads []staged
	config    int                // the content of a ConfigMap, which is not part of a pod template
	broken    bool               // the commit cannot be rendered
	promotion *rollout.Promotion // the promotion file
	hooks     []rollout.Object   // hook Jobs, and other objects that they need
}

// staged is one Deployment and, unless plain is true, its Rollout document.
type staged struct {
	spec    rollout.Spec
	version string
	plain   bool // the Deployment has no Rollout document
	gone    bool // the Deployment does not exist either

	services []string // Services that exist even if no document names them
}

// editCanary changes a copy of the canary, because earlier commits share it.
func (w *staged) editCanary(change func(*rollout.Canary)) {
	c := *w.spec.Canary
	change(&c)
	w.spec.Canary = &c
}

func (s source) clone() source {
	s.workloads = slices.Clone(s.workloads)
	return s
}

// named returns the workload with the given name. The workload must exist.
func (s *source) named(name string) *staged {
	return &s.workloads[slices.IndexFunc(s.workloads, func(w staged) bool { return w.spec.Workload.Name == name })]
}

// history is the users' branch, oldest commit first.
type history struct {
	commits []source
	renders map[int]*rollout.Render
	author  string
}

// newKube returns a cluster that behaves the same in each run.
func newKube() *kube.Cluster { return kube.New(rand.New(rand.NewPCG(1, 1)), noon) }

func newHistory(first source) *history {
	return &history{commits: []source{first}, renders: map[int]*rollout.Render{}, author: "Ann"}
}

// historyOf returns a branch with v1 of one workload.
func historyOf(spec rollout.Spec) *history {
	return newHistory(source{workloads: []staged{{spec: spec, version: "v1"}}})
}

func (h *history) head() source { return h.commits[len(h.commits)-1] }

// workload returns the first workload of the first commit.
func (h *history) workload() rollout.Workload { return h.commits[0].workloads[0].spec.Workload }

// push commits the head's content with a change.
func (h *history) push(change func(*source)) {
	next := h.head().clone()
	change(&next)
	h.commits = append(h.commits, next)
}

func commitID(i int) string { return fmt.Sprintf("c%06d", i) }

func (h *history) headID() string { return commitID(len(h.commits) - 1) }

// at returns the render of a commit, nil for "".
func (h *history) at(id string) *rollout.Render {
	var i int
	if _, err := fmt.Sscanf(id, "c%06d", &i); err != nil {
		return nil
	}
	if r, ok := h.renders[i]; ok {
		return r
	}
	r := renderOf(h.commits[i], rollout.Commit{ID: id, Author: h.author, Subject: "commit " + id})
	h.renders[i] = r
	return r
}

// releaseAt returns a release with the version of a commit. The release began at noon.
func (h *history) releaseAt(id string) rollout.Release {
	r := h.at(id)
	return rollout.Release{Commit: id, Hash: r.Release(), Author: "Ann", Since: noon, Templates: r.Staged()}
}

func (h *history) headInput() strategies.Head {
	head := strategies.Head{Commit: rollout.Commit{ID: h.headID(), Author: h.author, Subject: "commit " + h.headID()}}
	if h.head().broken {
		head.Err = errors.New("kustomization.yaml: is not valid YAML")
		return head
	}
	head.Render = h.at(head.Commit.ID)
	return head
}

func renderOf(s source, c rollout.Commit) *rollout.Render {
	r := &rollout.Render{App: testApp, Commit: c, Templates: map[rollout.Workload]rollout.Hash{}}
	config := object("v1", "ConfigMap", "config")
	config["data"] = map[string]any{"n": fmt.Sprint(s.config)}
	r.Objects = append([]rollout.Object{config}, s.hooks...)
	for _, w := range s.workloads {
		if w.gone {
			continue
		}
		r.Objects = append(r.Objects, servicesOf(w.spec, w.services...)...)
		r.Objects = append(r.Objects, deploymentObject(w))
		if w.spec.Canary != nil && w.spec.Canary.Traffic != nil {
			r.Objects = append(r.Objects, routeObject(w.spec))
		}
		hash, err := rollout.HashTemplate(map[string]any{"version": w.version})
		if err != nil {
			panic(err) // json.Marshal accepts each map of strings
		}
		r.Templates[w.spec.Workload] = hash
		if !w.plain {
			r.Specs = append(r.Specs, w.spec)
		}
	}
	raw, err := json.Marshal(struct {
		Objects []rollout.Object
		Specs   []rollout.Spec
	}{r.Objects, r.Specs})
	if err != nil {
		panic(err) // json.Marshal accepts all test objects
	}
	sum := sha256.Sum256(raw)
	r.Digest, r.Hooked = hex.EncodeToString(sum[:]), slices.ContainsFunc(r.Objects, hook.Is)
	if len(r.Specs) == 0 {
		if r.Content, err = rollout.HashContent(testApp.Namespace, r.Objects); err != nil {
			panic(err)
		}
	}
	return r
}

// object returns an object of the app's namespace.
func object(apiVersion, kind, name string) rollout.Object {
	return rollout.Object{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": testApp.Namespace}}
}

// jobOf returns a Job with annotations.
func jobOf(name string, annotations map[string]any) rollout.Object {
	job := object("batch/v1", "Job", name)
	job["spec"] = map[string]any{}
	job.Set(annotations, "metadata", "annotations")
	return job
}

var testApp = rollout.App{Name: "shop", Path: "apps/shop/prod", Namespace: "shop"}

func servicesOf(spec rollout.Spec, others ...string) []rollout.Object {
	var all []rollout.Object
	main, side := plan.Compile(spec).Services(rollout.State{})
	for i, name := range append([]string{main, side}, others...) {
		if name != "" && (i < 2 || name != main && name != side) {
			all = append(all, rollout.Object{
				"apiVersion": "v1", "kind": "Service",
				"metadata": map[string]any{"name": name, "namespace": spec.Workload.Namespace},
				"spec":     map[string]any{"selector": map[string]any{"app": spec.Workload.Name}},
			})
		}
	}
	return all
}

// routeObject returns the HTTPRoute of a routed workload.
func routeObject(spec rollout.Spec) rollout.Object {
	main, side := plan.Compile(spec).Services(rollout.State{})
	return rollout.Object{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
		"metadata": map[string]any{"name": spec.Workload.Name, "namespace": spec.Workload.Namespace},
		"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": []any{
			map[string]any{"name": main, "port": int64(80)}, map[string]any{"name": side, "port": int64(80)},
		}}}},
	}
}

func mustDesired(s rollout.State, v workloads.View) []rollout.Object {
	objects, err := strategies.Desired(s, v)
	if err != nil {
		panic(err) // render refuses invalid routes
	}
	return objects
}

// desiredOf returns the desired object of a workload, or nil if the object is not desired.
func desiredOf(in strategies.Input, h *history, w rollout.Workload) rollout.Object {
	o, _ := rollout.Find(mustDesired(in.State, viewOf(in, h)), func(o rollout.Object) bool { return o.Ref() == w.Ref() })
	return o
}

// readAgain encodes a state and decodes the result.
func readAgain(t testing.TB, s rollout.State) rollout.State {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := rollout.ParseState("state.yaml", data)
	if err != nil {
		t.Fatalf("a state that is written cannot be read: %v\n%s", err, data)
	}
	return *again
}

func deploymentObject(w staged) rollout.Object {
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": w.spec.Workload.Name}},
		"template": map[string]any{"version": w.version, "metadata": map[string]any{"labels": map[string]any{"app": w.spec.Workload.Name}}},
		"strategy": map[string]any{"rollingUpdate": map[string]any{
			"maxSurge": amountValue(w.spec.MaxSurge), "maxUnavailable": amountValue(w.spec.MaxUnavailable),
		}},
		"minReadySeconds": int64(w.spec.MinReadySeconds),
	}
	if w.spec.Replicas != nil {
		spec["replicas"] = int64(*w.spec.Replicas)
	}
	ref := w.spec.Workload.Ref()
	return rollout.Object{
		"apiVersion": ref.Group + "/v1", "kind": ref.Kind,
		"metadata": map[string]any{"name": w.spec.Workload.Name, "namespace": w.spec.Workload.Namespace},
		"spec":     spec,
	}
}

func amountValue(a rollout.Amount) any {
	if a.Percent {
		return a.String()
	}
	return int64(a.Value)
}

// loop is a minimal reconciler with the real reconciler's order of actions: apply the state, observe, decide. A rollback is applied and
// then recorded. Other transitions are recorded and then applied.
type loop struct {
	git     *history
	kube    *kube.Cluster
	state   rollout.State         // the state on the state branch
	pending *strategies.Decision  // in memory: a rollback that is not recorded yet
	settled bool                  // the cluster accepted all objects in the last pass
	runs    []rollout.AnalysisRun // in memory: State.Analyses with later measurements
	health  strategies.Health     // in memory
	routing string                // in memory: the last value of strategies.Routing, applied since applyAt
	applyAt time.Time
	watches bool // the process watches routes and knows since when they are applied
	noisy   bool
	serials bool // each recorded state gets the next serial number
	looks   int

	calendar rollout.Calendar
	jobs     map[string]*liveJob // in the cluster
	unmade   map[string]bool     // deleted by hand
	fate     func(job string) rollout.JobState

	plans plan.Cache // one cache for the whole run, to compile each spec once

	between func()                                        // runs between two writes
	decided func(strategies.Input, strategies.Decision)   // called for each decision
	mutate  func(*strategies.Input, *strategies.Decision) // makes each decision wrong on purpose; nil for correct decisions
	wrote   func(rollout.State, []rollout.Object)         // called before each apply
	applied func(rollout.State, []rollout.Object)         // called after each apply
	commits func(was, is rollout.State, subject string)   // called for each commit of the state branch
	fails   func(what string) bool                        // whether an action fails: "git", a push; "delete", a deletion; "crash", the process
	refuses func(commit string) bool                      // the API server refuses the objects of a commit
	madeJob func(strategies.HookJob)                      // called for each created Job
	misses  func() bool                                   // whether the API server refuses an object other than a Deployment
}

func newLoop(git *history, k *kube.Cluster) *loop {
	return &loop{
		git: git, kube: k, madeJob: func(strategies.HookJob) {}, plans: plan.Cache{}, between: func() {},
		decided: func(strategies.Input, strategies.Decision) {},
		wrote:   func(rollout.State, []rollout.Object) {}, applied: func(rollout.State, []rollout.Object) {},
		commits: func(rollout.State, rollout.State, string) {}, fails: func(string) bool { return false },
		jobs: map[string]*liveJob{}, fate: func(string) rollout.JobState { return rollout.JobState{} },
		refuses: func(string) bool { return false }, misses: func() bool { return false },
	}
}

// observe returns the cluster's state. If noisy is set, the problems of unready pods change at each observation, like restart counts.
func (l *loop) observe() rollout.Observed {
	o := l.kube.Observe()
	if l.looks++; !l.noisy {
		return o
	}
	for _, live := range o.Workloads {
		for i, r := range live.Revisions {
			if r.Problem != "" {
				live.Revisions[i].Problem += fmt.Sprintf(" (restarted %d times)", l.looks)
			}
		}
	}
	return o
}

// input returns the input of the next decision.
func (l *loop) input(s rollout.State, settled bool) strategies.Input {
	in := strategies.Input{
		Now: l.kube.Now, App: testApp, Head: l.git.headInput(), Source: l.git.at(s.Source), State: s,
		Promotion: l.git.head().promotion, Observed: l.observe(), Answers: strategies.Answers{Healed: &settled},
		Calendar: l.calendar, Runs: l.runs, Health: l.health, Applied: l.routedSince(s),
	}.WithPlans(l.plans)
	if s.Release != nil && s.Phase == rollout.Aborting {
		in.Left = l.git.at(s.Release.Commit)
	}
	if s.Watch != nil {
		in.Left = l.git.at(s.Watch.Former.Commit)
	}
	for d := strategies.Decide(in); d.Ask != nil && (d.Ask.Foreign != nil || d.Ask.Adoptable != nil); d = strategies.Decide(in) {
		in = l.answer(in, *d.Ask)
	}
	return in
}

// answer answers a decision's question. The cluster accepts a commit unless l.refuses returns true.
func (l *loop) answer(in strategies.Input, ask strategies.Ask) strategies.Input {
	switch {
	case ask.Heal:
		l.settled = l.apply(in.State)
		in.Answers.Healed, in.Observed = new(l.settled), l.observe()
		for _, e := range strategies.Evictions(in) {
			l.kube.Evict(e.Namespace, e.Pod)
		}
	case ask.Foreign != nil:
		in.Answers.Foreign = &[]rollout.Foreign{}
	case ask.Adoptable != nil:
		in.Answers.Adoptable = map[rollout.Workload]bool{}
		for _, o := range ask.Adoptable {
			w := rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}
			in.Answers.Adoptable[w] = kube.VersionOf(l.kube.Deployments[w].Template) == o.Map("spec", "template")["version"]
		}
	case ask.Endpoints != nil:
		in.Answers.Endpoints = map[strategies.Need]bool{}
		for _, need := range ask.Endpoints {
			in.Answers.Endpoints[need] = l.kube.Serves(need.Service, need.PodHash)
		}
	case ask.Jobs != nil:
		jobs := map[string]rollout.JobState{}
		maps.Copy(jobs, in.Answers.Jobs)
		for _, j := range ask.Jobs {
			jobs[j.Key()] = l.job(j)
		}
		in.Answers.Jobs = jobs
	default:
		accepted := map[string]error{ask.Accept: nil}
		maps.Copy(accepted, in.Answers.Accepted)
		if l.refuses(ask.Accept) {
			accepted[ask.Accept] = errors.New("Deployment shop/web: the server refuses it")
		}
		in.Answers.Accepted = accepted
	}
	return in
}

// liveJob is a Job in the cluster.
type liveJob struct {
	id    string
	state rollout.JobState
	anew  bool // the Job replaces a deleted Job with the same name
	made  time.Time
}

// job looks up, creates or deletes a Job in the cluster.
func (l *loop) job(ask strategies.HookJob) rollout.JobState {
	key := ask.Key()
	live := l.jobs[key]
	switch {
	case ask.Delete && l.fails("delete"):
		return rollout.JobState{Gone: true, Stuck: "timeout"}
	case ask.Delete:
		delete(l.jobs, key)
		return rollout.JobState{Gone: true}
	case live == nil && !ask.Make:
		return rollout.JobState{Gone: true}
	case live == nil:
		live = &liveJob{id: ask.Object.Annotation(hook.AnnotationID), anew: l.unmade[key], made: l.kube.Now}
		l.jobs[key] = live
		l.madeJob(ask)
	case live.id != ask.Object.Annotation(hook.AnnotationID):
		return rollout.JobState{Taken: true}
	}
	if !live.state.Complete && !live.state.Failed {
		live.state = l.fate(key)
		live.state.Started = live.made
	}
	live.state.Anew, live.anew = live.anew, false // reported only once
	return live.state
}

// desired returns the objects of a state.
func (l *loop) desired(s rollout.State) []rollout.Object {
	v := workloads.View{Now: l.kube.Now, Applied: l.routedSince(s), Source: l.git.at(s.Source), Observed: l.observe(), Plans: l.plans}
	if v.Source == nil {
		return nil
	}
	if strategies.NeedsStable(s, v) {
		v.Stable = l.git.at(s.Stable.Commit)
	}
	return mustDesired(s, v)
}

func (l *loop) pass() strategies.Decision {
	s := l.state
	if l.pending != nil {
		s = l.pending.State
	}
	in := l.input(s, false)
	l.health = l.health.Seen(in)
	in.Answers, in.Pending, in.Health = strategies.Answers{}, l.pending, l.health
	d := strategies.Decide(in)
	for asks := 0; d.Ask != nil; asks++ {
		if asks == maxAsks {
			panic(fmt.Sprintf("asks without end: %+v", *d.Ask))
		}
		in = l.answer(in, *d.Ask)
		d = strategies.Decide(in)
	}
	if l.mutate != nil {
		l.mutate(&in, &d)
	}
	l.decided(in, d)
	if d.Rollback {
		l.settled = l.apply(d.State)
	} else if l.settled {
		l.prune(&d)
	}
	if d.State.Source != "" {
		d.State.Inventory, d.State.Generated = strategies.Inventory(d.State, l.desired(d.State)),
			strategies.Generated(d.State, l.desired(d.State))
	}
	if d.State.Equal(&l.state) {
		return d
	}
	if l.fails("git") {
		if d.Rollback {
			l.pending = &d
		}
		return d
	}
	was := l.state
	l.state, l.pending = d.State, nil
	if l.serials {
		l.state.Serial++
	}
	l.commits(was, l.state, d.Subject)
	if l.fails("crash") {
		l.pending = nil
		return d
	}
	l.settled = l.apply(l.state)
	return d
}

// apply applies the objects of a state. It returns false if the cluster refuses an object.
func (l *loop) apply(s rollout.State) bool {
	objects := l.desired(s)
	l.wrote(s, objects)
	for _, object := range objects {
		if err := l.kube.Apply(object); err != nil {
			return false
		}
		l.between()
	}
	for _, ref := range strategies.Leftover(s, objects) {
		l.remove(ref)
	}
	l.applied(s, objects)
	return !l.misses()
}

// routedSince returns when this process first saw a state's routes in the cluster, or zero if this time is unknown.
func (l *loop) routedSince(s rollout.State) time.Time {
	source := l.git.at(s.Source)
	if source == nil || !l.watches {
		return time.Time{}
	}
	if is := strategies.Routing(s, source); is != l.routing {
		l.routing, l.applyAt = is, l.kube.Now
	}
	return l.applyAt
}

// remove deletes an object and the objects that it owns.
func (l *loop) remove(ref rollout.Ref) {
	if ref.Kind == "Deployment" {
		delete(l.kube.Deployments, rollout.Workload{Namespace: ref.Namespace, Name: ref.Name})
	}
	delete(l.kube.Pins, ref)
	delete(l.kube.Routes, ref)
}

// prune deletes the prunable objects of a decision that makes no transition.
func (l *loop) prune(d *strategies.Decision) {
	if d.Subject != "" || d.State.Source == "" {
		return
	}
	for _, ref := range strategies.Prunable(d.State, l.desired(d.State)) {
		l.remove(ref)
		d.State.Inventory = slices.DeleteFunc(slices.Clone(d.State.Inventory), func(r rollout.Ref) bool { return r == ref })
		d.Subject = "shop pruned " + ref.String()
	}
}

// rest runs events until no event is due. It returns false if new events are due again and again.
func (l *loop) rest() bool {
	for range 200 {
		for moves := 0; l.kube.Micro(); moves++ {
			if moves > 10_000 {
				return false
			}
		}
		before := l.fingerprint()
		if d := l.pass(); d.Subject == "" && (l.settled || l.misses()) && before == l.fingerprint() {
			return true
		}
	}
	return false
}

// fingerprint returns a text that differs after each change that a pass may make.
func (l *loop) fingerprint() string {
	all := dump(l.state) + fmt.Sprint(l.kube.Pins, dump(slices.Collect(maps.Values(l.kube.Routes))), l.pending != nil)
	for _, w := range sortedWorkloads(l.kube.Deployments) {
		d := l.kube.Deployments[w]
		all += fmt.Sprint(w, d.Generation, d.Observed, d.Annotations)
		for _, rs := range d.Sets {
			all += fmt.Sprint(rs.Name, rs.Version, len(rs.Pods), len(rs.Live()))
		}
	}
	return all
}

// nextDue returns the time of the cluster's next event or of the next requeue, or zero if there is no event or requeue.
func (l *loop) nextDue() time.Time {
	return rollout.Soonest(l.kube.NextDue(), strategies.Decide(l.input(l.state, l.settled)).Requeue)
}
