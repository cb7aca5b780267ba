package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

const (
	testCluster = "sim"
	testBranch  = "main"
	stateBranch = "gitrollout/state/" + testCluster
	namespace   = "shop"
)

// source describes the content of main at one commit.
type source struct {
	apps []appSource
	slip string // slipConfig, slipFolder, or "" without a mistake

	isFrozen bool // a Freeze document freezes all apps
}

// These values of source.slip are mistakes that concern all apps of the repository.
const (
	slipConfig = "config" // the configuration cannot be read
	slipFolder = "folder" // a folder has a name that no app may have
)

// appSource describes one app's folder.
type appSource struct {
	id, name  string // id: the first name, also used in the objects' names; name: the folder's name
	workloads []workloadSource
	config    int  // the version of the ConfigMap's data
	broken    bool // the folder cannot be rendered, or has no objects
	emptied   bool // broken means that the folder has no objects
	promotion *rollout.Promotion
	hooks     []hookSource
}

// hookSource describes a hook: a Job before a release, after a release, or after a rollback.
type hookSource struct {
	name, when string
	continues  bool
	edition    int // the number of the Job's content
}

// workloadSource describes one workload and, unless plain is set, the workload's Rollout document.
type workloadSource struct {
	name, version    string
	policy           string // "" for a Deployment; a StatefulSet's podManagementPolicy; for other kinds, a constant such as onNodes
	label            string // the value of the pods' label "app"; "" means the workload's name
	plain, gone      bool
	replicas         *int
	limits           [2]any // maxSurge, maxUnavailable
	minReady         int
	deadline, window int // window: the field rollbackWindow, -1 if absent
	deadlineAbort    bool
	paused           bool
	services         []string
	canary           map[string]any
	blueGreen        map[string]any
}

// steps returns the steps of a canary.
func (w workloadSource) steps() []any {
	steps, _ := w.canary["steps"].([]any)
	return steps
}

// setSteps replaces the steps in a copy of the canary, because sources of earlier commits share the original.
func (w *workloadSource) setSteps(steps []any) {
	w.canary = maps.Clone(w.canary)
	w.canary["steps"] = steps
}

func (s source) clone() source {
	s.apps = slices.Clone(s.apps)
	for i := range s.apps {
		s.apps[i].workloads = slices.Clone(s.apps[i].workloads)
	}
	return s
}

// files returns all files of main. A nil value deletes the file.
func (s source) files() map[string][]byte {
	out := map[string][]byte{}
	put := func(path string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err) // literals are JSON
		}
		out[path] = append(raw, '\n')
	}
	put(rollout.ConfigPath(testCluster), map[string]any{
		"apiVersion": rollout.APIVersion, "kind": "Config", "apps": []any{map[string]any{"path": "apps/*", "namespace": namespace}},
		"workloads": ownRows,
	})
	if s.isFrozen {
		put(rollout.FreezePath(testCluster), map[string]any{"apiVersion": rollout.APIVersion, "kind": "Freeze", "reason": "holidays"})
	}
	switch s.slip {
	case slipConfig:
		out[rollout.ConfigPath(testCluster)] = []byte("apps: [")
	case slipFolder:
		put("apps/New_Service/kustomization.yaml", map[string]any{"resources": []any{}})
	}
	for _, a := range s.apps {
		dir, resources := "apps/"+a.name+"/", []any{}
		add := func(file string, content map[string]any) {
			resources = append(resources, file)
			put(dir+file, content)
		}
		add("config.yaml", manifest("v1", "ConfigMap", a.id, map[string]any{"data": a.data()}))
		for _, w := range a.workloads {
			if w.gone {
				for _, file := range []string{"", "-rollout", "-services", "-route"} {
					out[dir+w.name+file+".yaml"] = nil
				}
				continue
			}
			add(w.name+".yaml", w.deployment())
			if !w.plain {
				add(w.name+"-rollout.yaml", w.rollout())
			}
			if w.isRouted() {
				add(w.name+"-route.yaml", w.route())
			}
			if len(w.services) > 0 {
				add(w.name+"-services.yaml", list(w.serviceObjects()))
			}
		}
		if len(a.hooks) > 0 {
			add("hooks.yaml", list(a.jobs()))
		}
		if slices.ContainsFunc(a.workloads, workloadSource.isMeasured) {
			add("analyses.yaml", list(analysisTemplates))
		}
		switch {
		case a.broken && a.emptied:
			resources, out[dir+"config.yaml"] = []any{"config.yaml"}, []byte{}
		case a.broken:
			resources = append(resources, "missing.yaml")
		}
		put(dir+"kustomization.yaml", map[string]any{"resources": resources})
		promotion := rollout.PromotionPath(testCluster, a.name)
		out[promotion] = nil
		if a.promotion != nil {
			var err error
			if out[promotion], err = a.promotion.Encode(); err != nil {
				panic(err)
			}
		}
	}
	return out
}

// randomHooks returns the Jobs of an app's hooks: at most one "before", one "after" and one "abort". Some hooks tolerate a failed Job.
func randomHooks(rng *rand.Rand, app string) (hooks []hookSource) {
	for _, when := range []string{"before", "after", "abort"} {
		if rng.IntN(3) > 0 {
			hooks = append(hooks, hookSource{name: app + "-" + when, when: when, continues: rng.IntN(4) == 0})
		}
	}
	return hooks
}

func (a appSource) jobs() (jobs []any) {
	for _, h := range a.hooks {
		annotations := map[string]any{"gitrollout.dev/hook": h.when}
		if h.continues {
			annotations["gitrollout.dev/hook-failure"] = "continue"
		}
		spec := map[string]any{"template": map[string]any{}, "completions": 1 + h.edition}
		job := manifest("batch/v1", "Job", h.name, map[string]any{"spec": spec})
		job["metadata"].(map[string]any)["annotations"] = annotations
		jobs = append(jobs, job)
	}
	return jobs
}

func manifest(version, kind, name string, more map[string]any) map[string]any {
	o := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
	maps.Copy(o, more)
	return o
}

func list(items []any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

func (w workloadSource) deployment() map[string]any {
	app := cmp.Or(w.label, w.name)
	labels, container := map[string]any{"app": app}, map[string]any{"name": "app", "image": "example/" + app + ":" + w.version}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}},
		},
		"minReadySeconds": w.minReady,
	}
	if w.replicas != nil {
		spec["replicas"] = *w.replicas
	}
	switch w.policy {
	case "":
		spec["strategy"] = map[string]any{"rollingUpdate": map[string]any{"maxSurge": w.limits[0], "maxUnavailable": w.limits[1]}}
		spec["progressDeadlineSeconds"] = w.deadline
	case onNodes, onKruisesNodes:
		spec["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": w.limits[1]}}
	case byCounts:
		spec["updateStrategy"] = map[string]any{"maxUnavailable": 1}
	case byKruisesOrdinals: // Kruise's StatefulSet has minReadySeconds in its updateStrategy
		delete(spec, "minReadySeconds")
		spec["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"minReadySeconds": w.minReady}}
	case byOldShare:
		delete(spec, "minReadySeconds")
		spec["rollout"] = map[string]any{"minReadySeconds": w.minReady}
	case byNewCounts:
	default:
		spec["serviceName"], spec["podManagementPolicy"] = w.name, w.policy
	}
	return manifest(w.apiVersion(), w.workload().Ref().Kind, w.name, map[string]any{"spec": spec})
}

// workload returns the workload's name in records.
func (w workloadSource) workload() rollout.Workload {
	return rollout.Workload{Kind: kinds[w.policy].kind, Namespace: namespace, Name: w.name}
}

func (w workloadSource) apiVersion() string { return kinds[w.policy].apiVersion }

// These policies select other kinds: DaemonSet, CloneSet, Kruise's DaemonSet, Kruise's StatefulSet, and the two kinds in ownRows.
const (
	onNodes, byCounts, onKruisesNodes, byKruisesOrdinals = "OnNodes", "ByCounts", "OnKruisesNodes", "ByKruisesOrdinals"
	byNewCounts, byOldShare                              = "ByNewCounts", "ByOldShare"
)

// kinds maps workloadSource.policy to the kind in records and to the API version.
var kinds = map[string]struct{ kind, apiVersion string }{
	"":                {"", "apps/v1"},
	"OrderedReady":    {"StatefulSet", "apps/v1"},
	"Parallel":        {"StatefulSet", "apps/v1"},
	onNodes:           {"DaemonSet", "apps/v1"},
	byCounts:          {"CloneSet.apps.kruise.io", "apps.kruise.io/v1alpha1"},
	onKruisesNodes:    {"DaemonSet.apps.kruise.io", "apps.kruise.io/v1alpha1"},
	byKruisesOrdinals: {"StatefulSet.apps.kruise.io", "apps.kruise.io/v1beta1"},
	byNewCounts:       {"GameServerSet.example.com", "example.com/v1"},
	byOldShare:        {"ShardSet.example.com", "example.com/v1"},
}

// ownRows has the kinds that the configuration describes: a kind with a partition of new pods, and a kind with ordinals.
var ownRows = []any{
	map[string]any{"apiVersion": "example.com/v1", "kind": "GameServerSet",
		"partition": map[string]any{"path": "spec.rollout.new", "counts": "new"}},
	map[string]any{"apiVersion": "example.com/v1", "kind": "ShardSet", "ordered": true,
		"partition":       map[string]any{"path": "spec.rollout.old", "unit": "percent"},
		"minReadySeconds": "spec.rollout.minReadySeconds"},
}

var ownKinds, ownKindsText = parseOwnKinds()

func parseOwnKinds() ([]rollout.Partitioned, string) {
	c, err := rollout.ParseConfig(rollout.ConfigPath(testCluster), source{}.files()[rollout.ConfigPath(testCluster)])
	if err != nil {
		panic(err) // literals are valid
	}
	return c.Workloads, rollout.PartitionedText(c.Workloads)
}

// partitionedPolicies has the policies of partitioned kinds that do not have one pod per node.
var partitionedPolicies = []string{byCounts, byKruisesOrdinals, byNewCounts, byOldShare}

// isOnNodes reports whether the workload has a pod on each node.
func (w workloadSource) isOnNodes() bool { return w.policy == onNodes || w.policy == onKruisesNodes }

// kind is a function that turns a workload into another kind of workload.
type kind func(w *workloadSource, rng *rand.Rand)

// partitioned returns a function that gives a workload a random policy of the given policies.
func partitioned(policies ...string) kind {
	return func(w *workloadSource, rng *rand.Rand) {
		policy := policies[0]
		if len(policies) > 1 {
			policy = policies[rng.IntN(len(policies))]
		}
		w.asSet(rng)
		w.policy = policy
		delete(w.canary, "rebalance")
	}
}

// asAgent turns a workload into a DaemonSet.
func (w *workloadSource) asAgent(rng *rand.Rand) {
	w.asSet(rng)
	w.policy, w.services, w.replicas = onNodes, nil, nil
	w.limits = [2]any{0, []any{1, 1, 1, 2, "25%", "100%"}[rng.IntN(6)]}
	for _, key := range []string{"rebalance", "stableService", "canaryService"} {
		delete(w.canary, key)
	}
	if rng.IntN(3) == 0 {
		w.canary["nodeOrder"] = []any{map[string]any{"matchLabels": map[string]any{"topology.kubernetes.io/zone": "local-b"}}}
	}
}

// asKruisesAgent turns a workload into Kruise's DaemonSet.
func (w *workloadSource) asKruisesAgent(rng *rand.Rand) {
	w.asAgent(rng)
	w.policy = onKruisesNodes
	delete(w.canary, "nodeOrder")
}

// asSet turns a workload into a StatefulSet, without the fields of Deployments. The canary scales in place, with steps from batches().
func (w *workloadSource) asSet(rng *rand.Rand) {
	w.policy, w.blueGreen, w.services = []string{"OrderedReady", "Parallel"}[rng.IntN(2)], nil, nil
	w.canary = map[string]any{"scaling": "inPlace", "steps": batches(rng)}
	if rng.IntN(4) == 0 {
		w.canary["steps"] = smallerLater(rng)
	}
	if rng.IntN(3) == 0 {
		w.canary["rebalance"] = true
	}
	if rng.IntN(2) == 0 {
		w.services = []string{w.name, w.name + "-canary"}
		w.canary["stableService"], w.canary["canaryService"] = w.name, w.name+"-canary"
	}
}

func (w workloadSource) serviceObjects() []any {
	var all []any
	for _, name := range w.services {
		all = append(all, manifest("v1", "Service", name, map[string]any{
			"spec": map[string]any{"selector": map[string]any{"app": cmp.Or(w.label, w.name)}, "ports": []any{map[string]any{"port": 80}}},
		}))
	}
	return all
}

func (w workloadSource) rollout() map[string]any {
	strategy := map[string]any{"canary": w.canary}
	if w.blueGreen != nil {
		strategy = map[string]any{"blueGreen": w.blueGreen}
	}
	spec := map[string]any{
		"workloadRef":           map[string]any{"apiVersion": w.apiVersion(), "kind": w.workload().Ref().Kind, "name": w.name},
		"strategy":              strategy,
		"paused":                w.paused,
		"progressDeadlineAbort": w.deadlineAbort,
	}
	if w.policy != "" {
		spec["progressDeadlineSeconds"] = w.deadline
	}
	if w.window >= 0 {
		spec["rollbackWindow"] = map[string]any{"revisions": w.window}
	}
	return manifest(rollout.APIVersion, "Rollout", w.name, map[string]any{"spec": spec})
}

var sizes = []int{0, 1, 1, 2, 3, 3, 5, 5, 7, 10, 10, 12}

func randomSource(rng *rand.Rand) source {
	var s source
	for _, name := range []string{"shop", "mail"}[:1+rng.IntN(4)/3] {
		a := appSource{id: name, name: name}
		for _, suffix := range []string{"-web", "-api"}[:1+rng.IntN(5)/4] {
			a.workloads = append(a.workloads, randomWorkload(rng, name+suffix))
		}
		s.apps = append(s.apps, a)
	}
	return s
}

func randomWorkload(rng *rand.Rand, name string) workloadSource {
	limits := [][2]any{
		{"25%", "25%"}, {"25%", "25%"}, {1, 0}, {0, 1}, {3, 2}, {"100%", 0}, {0, "100%"}, {"1%", "0%"}, {"50%", 0},
	}
	w := workloadSource{
		name: name, version: "v1", limits: limits[rng.IntN(len(limits))], deadline: 60 + rng.IntN(600), window: -1,
		deadlineAbort: rng.IntN(4) == 0,
	}
	if rng.IntN(3) > 0 {
		w.replicas = new(sizes[rng.IntN(len(sizes))])
	}
	if rng.IntN(3) == 0 {
		w.minReady = 1 + rng.IntN(20)
	}
	if rng.IntN(4) == 0 {
		w.window = rng.IntN(3)
	}
	if rng.IntN(4) == 0 {
		w.randomBlueGreen(rng)
		return w
	}
	scaling := "inPlace"
	w.canary = map[string]any{}
	if rng.IntN(2) == 0 {
		scaling = "surge"
		w.canary["abortScaleDownDelaySeconds"], w.canary["scaleDownDelaySeconds"] = rng.IntN(3)*15, rng.IntN(3)*60
	}
	w.canary["scaling"], w.canary["steps"] = scaling, randomSteps(rng, scaling)
	if scaling == "surge" && rng.IntN(4) == 0 {
		w.canary["minPodsPerReplicaSet"] = rng.IntN(4)
	}
	if rng.IntN(2) == 0 {
		w.services = []string{name, name + "-canary"}
		w.canary["stableService"], w.canary["canaryService"] = name, name+"-canary"
		if rng.IntN(2) == 0 {
			w.randomTraffic(rng)
		}
	}
	return w
}

func (w *workloadSource) randomBlueGreen(rng *rand.Rand) {
	w.services = []string{w.name}
	w.blueGreen = map[string]any{
		"activeService": w.name, "autoPromotionEnabled": rng.IntN(2) == 0, "autoPromotionSeconds": rng.IntN(3) * 20,
		"scaleDownDelaySeconds": rng.IntN(3) * 60, "abortScaleDownDelaySeconds": rng.IntN(3) * 15,
	}
	if rng.IntN(2) == 0 {
		w.services = append(w.services, w.name+"-preview")
		w.blueGreen["previewService"] = w.name + "-preview"
	}
	if rng.IntN(3) == 0 {
		w.blueGreen["previewReplicaCount"] = rng.IntN(4)
	}
}

func randomSteps(rng *rand.Rand, scaling string) []any {
	weights := []int{0, 1, 5, 10, 20, 25, 33, 50, 50, 66, 75, 90, 99, 100}
	steps := []any{}
	weight := 0
	for range rng.IntN(6) {
		step := map[string]any{}
		switch n := rng.IntN(10); {
		case n < 5:
			w := weights[rng.IntN(len(weights))]
			if w < weight && rng.IntN(4) > 0 {
				w = weight
			}
			weight = w
			step["setWeight"] = w
		case n < 7:
			step["pause"] = map[string]any{}
		case n < 9 || scaling != "surge":
			step["pause"] = map[string]any{"duration": fmt.Sprintf("%ds", 1+rng.IntN(60))}
		default:
			step["setCanaryScale"] = []any{
				map[string]any{"replicas": rng.IntN(5)}, map[string]any{"weight": rng.IntN(101)}, map[string]any{"matchTrafficWeight": true},
			}[rng.IntN(3)]
		}
		if len(steps) == 0 {
			step["name"] = "first"
		}
		steps = append(steps, step)
	}
	return steps
}

// batches returns random steps for in-place scaling. Half of the lists include a setCanaryScale.
func batches(rng *rand.Rand) []any {
	steps := randomSteps(rng, "inPlace")
	if rng.IntN(2) == 0 {
		batch := []any{map[string]any{"replicas": rng.IntN(5)}, map[string]any{"weight": rng.IntN(101)}}[rng.IntN(2)]
		steps = slices.Insert(steps, rng.IntN(len(steps)+1), any(map[string]any{"setCanaryScale": batch}))
	}
	return steps
}

// randomExperiments inserts one or two experiments into a list of steps. In a routed canary, some templates have a weight.
func randomExperiments(rng *rand.Rand, canary map[string]any, steps []any) []any {
	for range 1 + rng.IntN(2) {
		var templates []any
		for _, name := range []string{"baseline", "candidate"}[rng.IntN(2):] {
			ref := []string{"stable", "canary"}[rng.IntN(2)]
			templates = append(templates, map[string]any{"name": name, "specRef": ref, "replicas": 1 + rng.IntN(3)})
		}
		e := map[string]any{"duration": fmt.Sprintf("%ds", 1+rng.IntN(60)), "progressDeadlineSeconds": 30 + rng.IntN(300), "templates": templates}
		steps = slices.Insert(slices.Clone(steps), rng.IntN(len(steps)+1), any(map[string]any{"experiment": e}))
	}
	weight := 0
	for _, step := range steps {
		if w, is := step.(map[string]any)["setWeight"].(int); is {
			weight = w
		}
		e, is := step.(map[string]any)["experiment"].(map[string]any)
		if !is || canary["trafficRouting"] == nil || canary["dynamicStableScale"] == true || weight > 80 {
			continue
		}
		for _, template := range e["templates"].([]any) {
			if t := template.(map[string]any); t["replicas"].(int) > 1 {
				t["weight"] = 10
			}
		}
	}
	return steps
}
