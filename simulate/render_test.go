package simulate

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// shortcut is a quick copy of the real renderer for random sources. Every tenth seed uses the real renderer instead. TestShortcut compares
// the two renderers.
type shortcut struct {
	known map[string]appSource // sources by the path and the tree id of the app's folder
	made  map[string]*rollout.Render
	specs map[string]rollout.Spec // specs from the real renderer, by their documents
}

var _ reconciler.Renderer = (*shortcut)(nil)

func newShortcut() *shortcut {
	return &shortcut{known: map[string]appSource{}, made: map[string]*rollout.Render{}, specs: map[string]rollout.Spec{}}
}

// learn stores the sources of the app folders in a commit.
func (r *shortcut) learn(c *memgit.Snapshot, s source) {
	for _, a := range s.apps {
		if e, found, _ := c.Lookup("apps/" + a.name); found {
			r.known["apps/"+a.name+" "+e.ID] = a
		}
	}
}

// Render implements reconciler.Renderer.
func (r *shortcut) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	e, _, err := tree.Lookup(app.Path)
	if err != nil {
		return nil, err
	}
	key := app.Path + " " + e.ID
	made := r.made[key]
	if made == nil {
		a, known := r.known[key]
		if !known || a.broken && !a.emptied {
			return nil, rollout.Invalidf(app.Path+"/kustomization.yaml", "resources", "missing.yaml does not exist")
		}
		made = a.render(app, r.specOf)
		r.made[key] = made
	}
	out := *made
	out.Commit = commit
	return &out, nil
}

// specOf returns the spec of a workload's Rollout document. If the document has analyses or experiments, the real renderer parses the
// document, but only once.
func (r *shortcut) specOf(w workloadSource) rollout.Spec {
	if !w.isMeasured() && !w.hasExperiments() {
		return w.spec()
	}
	w.version = "v0"
	key := dump([]any{w.deployment(), w.rollout()})
	spec, known := r.specs[key]
	if !known {
		g, s := memgit.New(nil), source{apps: []appSource{{id: "spec", name: "spec", workloads: []workloadSource{w}}}}
		id := g.Commit(memgit.Change{Branch: testBranch, Author: "Ann", Message: "a spec", Edits: s.files()})
		app := rollout.App{Name: "spec", Path: "apps/spec", Namespace: namespace, Workloads: ownKindsText}
		made, err := render.New(render.InProcess{}).Render(g.Commits[id], app, g.Commits[id].Commit())
		if err != nil {
			panic(err) // random documents are valid
		}
		spec = made.Specs[0]
		r.specs[key] = spec
	}
	return spec
}

func (a appSource) render(app rollout.App, specOf func(workloadSource) rollout.Spec) *rollout.Render {
	dir := "apps/" + a.name + "/"
	r := &rollout.Render{
		App: app, Templates: map[rollout.Workload]rollout.Hash{}, Files: []string{dir + "config.yaml", dir + "kustomization.yaml"},
	}
	objects := []any{manifest("v1", "ConfigMap", a.id, map[string]any{"data": a.data()})}
	jobs := a.jobs()
	if a.broken && a.emptied {
		objects, jobs, a.workloads = nil, nil, nil
	}
	var routes, deployments []any
	for _, w := range a.workloads {
		if w.gone {
			continue
		}
		r.Files = append(r.Files, dir+w.name+".yaml")
		if len(w.services) > 0 {
			r.Files = append(r.Files, dir+w.name+"-services.yaml")
		}
		if w.isRouted() {
			r.Files = append(r.Files, dir+w.name+"-route.yaml")
			routes = append(routes, w.route())
		}
		objects, deployments = append(objects, w.serviceObjects()...), append(deployments, w.deployment())
		if !w.plain {
			r.Files = append(r.Files, dir+w.name+"-rollout.yaml")
			r.Specs = append(r.Specs, specOf(w))
		}
	}
	if len(a.hooks) > 0 {
		r.Files = append(r.Files, dir+"hooks.yaml")
	}
	if slices.ContainsFunc(a.workloads, workloadSource.isMeasured) {
		r.Files = append(r.Files, dir+"analyses.yaml")
	}
	slices.Sort(r.Files)
	slices.SortFunc(r.Specs, func(a, b rollout.Spec) int { return strings.Compare(a.Workload.Name, b.Workload.Name) })
	byName := func(a, b any) int {
		return strings.Compare(rollout.Object(a.(map[string]any)).Name(), rollout.Object(b.(map[string]any)).Name())
	}
	for _, some := range [][]any{objects[min(1, len(objects)):], routes, deployments, jobs} {
		slices.SortFunc(some, byName)
	}
	for _, o := range slices.Concat(objects, routes, deployments, jobs) {
		made := objectOf(o)
		w, is := rollout.WorkloadOf(made.Ref())
		if p, _ := rollout.FindPartitioned(ownKinds, made.APIVersion(), made.Kind()); is || p != nil {
			hash, err := rollout.HashTemplate(made.Map("spec", "template"))
			if err != nil {
				panic(err) // literals are JSON
			}
			r.Templates[w] = hash
		}
		r.Objects = append(r.Objects, made)
	}
	raw, err := json.Marshal(struct{ Objects, Specs any }{r.Objects, r.Specs})
	if err != nil {
		panic(err)
	}
	r.Digest, r.Hooked = rollout.Digest(raw, 20), slices.ContainsFunc(r.Objects, hook.Is)
	if len(r.Specs) == 0 {
		if r.Content, err = rollout.HashContent(app.Namespace, r.Objects); err != nil {
			panic(err) // literals are JSON
		}
	}
	return r
}

// objectOf returns a literal as an object in the namespace of the tests' apps.
func objectOf(literal any) rollout.Object {
	plain, err := rollout.Plain(literal)
	if err != nil {
		panic(err) // literals are JSON
	}
	o := rollout.Object(plain.(map[string]any))
	o.Map("metadata")["namespace"] = namespace
	return o
}

func (w workloadSource) spec() rollout.Spec {
	s := rollout.Spec{
		Name: w.name, Workload: w.workload(), Replicas: w.replicas,
		MaxSurge: amount(w.limits[0]), MaxUnavailable: amount(w.limits[1]), MinReadySeconds: w.minReady,
		ProgressDeadlineSeconds: w.deadline, ProgressDeadlineAbort: w.deadlineAbort, Paused: w.paused, Scaling: rollout.Surge,
	}
	if w.window >= 0 {
		s.RollbackWindow = new(w.window)
	}
	number := func(from map[string]any, key string, absent int) int {
		if n, given := from[key].(int); given {
			return n
		}
		return absent
	}
	text := func(from map[string]any, key string) string { s, _ := from[key].(string); return s }
	if b := w.blueGreen; b != nil {
		s.BlueGreen = &rollout.BlueGreen{
			ActiveService: text(b, "activeService"), PreviewService: text(b, "previewService"),
			AutoPromotionEnabled: b["autoPromotionEnabled"].(bool), AutoPromotionSeconds: number(b, "autoPromotionSeconds", 0),
			ScaleDownDelaySeconds: number(b, "scaleDownDelaySeconds", 30), AbortScaleDownDelaySeconds: number(b, "abortScaleDownDelaySeconds", 30),
		}
		if n, given := b["previewReplicaCount"].(int); given {
			s.BlueGreen.PreviewReplicaCount = &n
		}
		return s
	}
	c := w.canary
	s.Scaling = rollout.Scaling(text(c, "scaling"))
	if w.policy != "" {
		s.Scaling, s.MaxSurge, s.MaxUnavailable = rollout.InPlace, rollout.Amount{}, rollout.Amount{}
	}
	s.Partition, _ = rollout.FindPartitioned(ownKinds, w.apiVersion(), w.workload().Ref().Kind)
	if w.isOnNodes() {
		s.MaxUnavailable = amount(w.limits[1])
	}
	s.Canary = &rollout.Canary{
		StableService: text(c, "stableService"), CanaryService: text(c, "canaryService"),
		MinPodsPerReplicaSet:       number(c, "minPodsPerReplicaSet", 0),
		AbortScaleDownDelaySeconds: number(c, "abortScaleDownDelaySeconds", 30), ScaleDownDelaySeconds: number(c, "scaleDownDelaySeconds", 0),
	}
	if s.Scaling == rollout.InPlace {
		s.Canary.AbortScaleDownDelaySeconds = 0
	}
	s.Canary.Rebalance, _ = c["rebalance"].(bool)
	if _, ordered := c["nodeOrder"]; ordered {
		s.Canary.NodeOrder = []rollout.NodeSelector{{MatchLabels: map[string]string{"topology.kubernetes.io/zone": "local-b"}}}
	}
	w.traffic(s.Canary)
	if s.Canary.DynamicStableScale {
		s.Canary.AbortScaleDownDelaySeconds = 0
	}
	for _, raw := range w.steps() {
		s.Canary.Steps = append(s.Canary.Steps, stepOf(raw.(map[string]any)))
	}
	return s
}

func durationOf(v any) time.Duration {
	d, err := time.ParseDuration(v.(string))
	if err != nil {
		panic(err) // literals are durations
	}
	return d
}

func stepOf(raw map[string]any) rollout.Step {
	step := rollout.Step{Route: routeOf(raw)}
	step.Name, _ = raw["name"].(string)
	if n, given := raw["setWeight"].(int); given {
		step.SetWeight = &n
	}
	if pause, given := raw["pause"].(map[string]any); given {
		step.Pause = &rollout.Pause{}
		if pause["duration"] != nil {
			step.Pause.Duration = new(durationOf(pause["duration"]))
		}
	}
	if scale, given := raw["setCanaryScale"].(map[string]any); given {
		step.SetCanaryScale = &rollout.CanaryScale{}
		if n, given := scale["replicas"].(int); given {
			step.SetCanaryScale.Replicas = &n
		}
		if n, given := scale["weight"].(int); given {
			step.SetCanaryScale.Weight = &n
		}
		_, step.SetCanaryScale.MatchTrafficWeight = scale["matchTrafficWeight"]
	}
	return step
}

func amount(v any) rollout.Amount {
	if n, is := v.(int); is {
		return rollout.Amount{Value: n}
	}
	n, err := strconv.Atoi(strings.TrimSuffix(v.(string), "%"))
	if err != nil {
		panic(err)
	}
	return rollout.Amount{Value: n, Percent: true}
}

// TestShortcut checks that the shortcut returns the same renders as the real renderer.
func TestShortcut(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20 // remainders of the seed select features, and no divisor below exceeds 10
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		g, s := memgit.New(nil), randomSource(rng)
		for i := range s.apps {
			for j := range s.apps[i].workloads {
				w := &s.apps[i].workloads[j]
				w.plain = seed%7 == 3
				if seed%3 == 1 && w.canary != nil {
					w.canary["steps"] = randomExperiments(rng, w.canary, w.steps())
				}
				switch seed % 4 {
				case 1:
					partitioned(partitionedPolicies[int(seed/4)%len(partitionedPolicies)])(w, rng)
					w.randomMatches(rng)
				case 2:
					w.asSet(rng)
					w.randomMatches(rng)
				case 3:
					w.asAgent(rng)
				}
				if seed%2 == 1 {
					randomAnalyses(rng, w)
				}
				if seed%4 < 2 {
					randomWatch(rng, w)
				}
			}
			if seed%5 > 2 && seed%4 != 1 { // no hooks with partitioned kinds
				s.apps[i].hooks = randomHooks(rng, s.apps[i].id)
			}
			s.apps[i].broken, s.apps[i].emptied = seed%10 == 5, seed%10 == 5
		}
		id := g.Commit(memgit.Change{Branch: testBranch, Author: "Ann", Message: "first", Edits: s.files()})
		quick := newShortcut()
		quick.learn(g.Commits[id], s)
		for _, a := range s.apps {
			app, at := rollout.App{Name: a.name, Path: "apps/" + a.name, Namespace: namespace, Workloads: ownKindsText}, g.Commits[id].Commit()
			want, _, err := render.InProcess{}.Build(g.Commits[id], app)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			want.Commit = at
			got, err := quick.Render(g.Commits[id], app, at)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if (got.Content == "") != (want.Content == "") { // the real renderer's objects have no namespaces yet, so the values differ
				t.Errorf("seed %d, %s: content %q, want %q", seed, a.name, got.Content, want.Content)
			}
			got.Digest, want.Digest, want.Warnings = "", "", nil
			got.Content, want.Content = "", ""
			if diff := compare.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %s (-real +shortcut):\n%s", seed, a.name, diff)
			}
		}
	}
}
