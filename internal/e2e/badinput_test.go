package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// badInput is a mistake in an app's folder. files maps the names of changed files to their new content ("" removes the file). The app must
// be held (State.Held), and its message must contain each wanted text.
type badInput struct {
	files map[string]string
	want  []string
}

// one returns a badInput that replaces the content of one file.
func one(file, content string, want ...string) badInput {
	return badInput{files: map[string]string{file: content}, want: want}
}

// edited returns a badInput that replaces one text in a file.
func edited(file, old, new string, want ...string) badInput {
	return badInput{files: map[string]string{file: "EDIT\x00" + old + "\x00" + new}, want: want}
}

func steps(lines ...string) badInput {
	return badInput{files: map[string]string{"rollout.yaml": shop{strategy: canary("", lines...)}.files()["rollout.yaml"]}}
}

func (b badInput) names(want ...string) badInput { b.want = want; return b }

func badInputs() map[string]badInput {
	base := newShop(2, "", "setWeight: 50", "pause: {}")
	doc := func(strategy string) string { s := base; s.strategy = strategy; return s.files()["rollout.yaml"] }
	spec := func(lines string) string { s := base; s.rollout = lines; return s.files()["rollout.yaml"] }
	kustomization := func(content string, want ...string) badInput { return one("kustomization.yaml", content, want...) }
	weighted := func(fields string, want ...string) badInput {
		return one("rollout.yaml", doc(canary(fields, "setWeight: 10")), want...)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	return map[string]badInput{
		"broken YAML in the kustomization":   kustomization("resources: [shop.yaml\n", "kustomization.yaml"),
		"unknown field in the kustomization": kustomization("resources: [shop.yaml]\nresourcez: []\n", "resourcez"),
		"kustomization of the wrong kind":    kustomization("apiVersion: v1\nkind: Pod\nresources: [shop.yaml]\n", "kind"),
		"missing resource": kustomization("resources: [shop.yaml, rollout.yaml, services.yaml, nothere.yaml]\n",
			"nothere.yaml"),
		"resource listed twice":      kustomization("resources: [shop.yaml, shop.yaml, rollout.yaml, services.yaml]\n", "shop"),
		"remote base by https":       kustomization("resources: [\"https://example.com/base.yaml\"]\n", "https://example.com/base.yaml"),
		"remote base by git":         kustomization("resources: [\"github.com/org/repo//base?ref=v1\"]\n", "github.com/org/repo"),
		"remote base by ssh":         kustomization("resources: [\"git@example.com:org/repo.git//base\"]\n", "git@example.com"),
		"path out of the repository": kustomization("resources: [../../../../etc/passwd]\n", "../../../../etc/passwd"),
		"absolute path":              kustomization("resources: [/etc/passwd]\n", "/etc/passwd"),
		"base that includes itself":  kustomization("resources: [../NS, shop.yaml]\n", "NS"),
		"cycle of two bases": {files: map[string]string{"kustomization.yaml": "resources: [sub]\n",
			"sub/kustomization.yaml": "resources: [..]\n"}, want: []string{"sub"}},
		"helm charts": kustomization("helmCharts: [{name: x, repo: https://example.com}]\n", "helmCharts"),
		"exec function": {files: map[string]string{"kustomization.yaml": "resources: [shop.yaml]\n" +
			"transformers: [fn.yaml]\n", "fn.yaml": "apiVersion: v1\nkind: X\nmetadata:\n  name: x\n  annotations:\n" +
			"    config.kubernetes.io/function: |\n      exec: {path: /bin/sh}\n"}, want: []string{"fn.yaml"}},
		"patch of nothing": kustomization("resources: [shop.yaml, rollout.yaml, services.yaml]\n"+
			"patches: [{patch: '{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"nobody\"}}'}]\n", "nobody"),
		"no kustomization any more": kustomization("", "no longer lists"),
		"broken YAML in a resource": one("shop.yaml", "apiVersion: apps/v1\nkind: [Deployment\n", "shop.yaml"),
		"tabs in YAML":              one("shop.yaml", "apiVersion: apps/v1\n\tkind: Deployment\n", "shop.yaml"),
		"resource without a kind":   one("shop.yaml", "apiVersion: apps/v1\nmetadata: {name: shop}\n", "kind"),
		"resource without a name":   one("shop.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\n", "name"),
		"binary garbage":            one("shop.yaml", "\x00\x01\x02\xff\xfe", "shop.yaml"),
		"empty kustomization":       kustomization("{}\n", "kustomization"),
		"alias bomb":                one("shop.yaml", bomb+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n", "shop.yaml"),
		"50 MB manifest":            one("shop.yaml", "# "+strings.Repeat("x", 50<<20), "shop.yaml"),
		"deep nesting": one("shop.yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deep}\nx: "+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+"\n", "shop.yaml"),
		"unknown field in the Rollout":   one("rollout.yaml", spec("  surprise: 1\n"), "surprise"),
		"unknown field in a step":        steps("setWeigth: 10").names("setWeigth"),
		"unknown version of the Rollout": edited("rollout.yaml", "gitrollout.dev/v1alpha1", "gitrollout.dev/v9", "gitrollout.dev/v9"),
		"weight over 100":                steps("setWeight: 101").names("setWeight", "101"),
		"negative weight":                steps("setWeight: -1").names("setWeight", "-1"),
		"weight that is a word":          steps("setWeight: many").names("setWeight"),
		"two actions in one step":        steps("{setWeight: 10, pause: {}}").names("steps[0]"),
		"empty step":                     steps("{}").names("steps[0]"),
		"pause of a negative time":       steps("pause: {duration: -5}").names("duration"),
		"pause of nonsense":              steps("pause: {duration: soon}").names("duration", "soon"),
		"pause in days":                  steps("pause: {duration: 2d}").names("duration", "2d"),
		"template that is not there": steps("analysis: {templates: [{templateName: x}]}").names("analysis.templates",
			"AnalysisTemplate x is not in this app"),
		"experiment without templates": steps("experiment: {duration: 1h, templates: []}").names("experiment", "templates", "is empty"),
		"experiment without an end":    steps("experiment: {templates: [{name: a, specRef: stable}]}").names("experiment", "has no end"),
		"route without Services":       weighted("trafficRouting: {nginx: {stableIngress: x}}", "stableService", "is missing"),
		"route that is not there": {files: map[string]string{"rollout.yaml": doc(canary("stableService: shop\n"+
			"canaryService: shop-canary\ntrafficRouting: {nginx: {stableIngress: x}}", "setWeight: 10")), "services.yaml": service("shop") +
			"---\n" + service("shop-canary")}, want: []string{"trafficRouting.nginx.stableIngress", "is not in this app"}},
		"setCanaryScale in place":           steps("setCanaryScale: {matchTrafficWeight: true}").names("setCanaryScale"),
		"both fences zero":                  weighted("maxSurge: 0\nmaxUnavailable: 0", "maxUnavailable"),
		"fence that is a word":              weighted("maxSurge: lots", "maxSurge", "lots"),
		"negative fence":                    weighted("maxSurge: -1", "maxSurge"),
		"unknown scaling":                   weighted("scaling: sideways", "scaling", "sideways"),
		"canary and blue-green":             one("rollout.yaml", doc(canary("", "setWeight: 10")+blueGreen), "strategy"),
		"no strategy":                       one("rollout.yaml", doc("    {}\n"), "strategy"),
		"blue-green without active Service": one("rollout.yaml", doc("    blueGreen: {previewService: shop}\n"), "activeService"),
		"preview is the active Service": one("rollout.yaml", doc("    blueGreen: {activeService: shop, previewService: shop}\n"),
			"previewService"),
		"missing active Service":       one("rollout.yaml", doc("    blueGreen: {activeService: nobody}\n"), "nobody"),
		"missing canary Service":       weighted("stableService: shop\ncanaryService: nobody", "nobody"),
		"stable is the canary Service": weighted("stableService: shop\ncanaryService: shop", "canaryService"),
		"Service that selects nothing": {files: map[string]string{"rollout.yaml": doc(canary("stableService: shop", "setWeight: 10")),
			"services.yaml": strings.Replace(service("shop"), "app: shop", "app: other", 1)}, want: []string{"selector"}},
		"Service with the hash in Git": {files: map[string]string{"rollout.yaml": doc(canary("stableService: shop", "setWeight: 10")),
			"services.yaml": strings.Replace(service("shop"), "app: shop", "app: shop, pod-template-hash: abc",
				1)}, want: []string{"pod-template-hash"}},
		"selector that does not match": edited("shop.yaml", "labels: {app: shop}", "labels: {app: other}", "selector"),
		"workload that is not there":   edited("rollout.yaml", "name: shop}", "name: nobody}", "nobody"),
		"workload of another kind":     edited("rollout.yaml", "kind: Deployment, name: shop", "kind: StatefulSet, name: shop", "StatefulSet"),
		"two rollouts of one workload": one("rollout.yaml",
			base.files()["rollout.yaml"]+"---\n"+strings.Replace(base.files()["rollout.yaml"], "name: shop\nspec", "name: again\nspec", 1), "shop"),
		"Recreate with steps": edited("shop.yaml", "  selector:", "  strategy: {type: Recreate}\n  selector:", "Recreate"),
		"deadline shorter than minReadySeconds": one("rollout.yaml", spec("  progressDeadlineSeconds: 5\n  minReadySeconds: 10\n"),
			"progressDeadlineSeconds"),
		"negative rollback window": one("rollout.yaml", spec("  rollbackWindow: {revisions: -1}\n"), "rollbackWindow"),
		"negative preview count": one("rollout.yaml", doc("    blueGreen: {activeService: shop, previewReplicaCount: -1}\n"),
			"previewReplicaCount"),
		"negative replicas":        edited("shop.yaml", "replicas: 2", "replicas: -2", "replicas"),
		"replicas that are a word": edited("shop.yaml", "replicas: 2", "replicas: two", "replicas"),
		"generator of a missing file": kustomization("resources: [shop.yaml, rollout.yaml, services.yaml]\n"+
			"configMapGenerator: [{name: c, files: [gone.txt]}]\n", "gone.txt"),
		"unknown kind for the cluster": one("services.yaml",
			service("shop")+"---\n"+service("shop-preview")+"---\napiVersion: example.com/v1\nkind: Nonsense\nmetadata: {name: x}\n", "Nonsense"),
		"field that the server refuses": edited("services.yaml", "port: 80,", "port: 800000,", "port"),
		"label that the server refuses": edited("shop.yaml", "metadata:\n  name: shop",
			"metadata:\n  name: shop\n  labels: {a: \"not a label!\"}", "label"),
		"immutable selector":     edited("shop.yaml", "app: shop", "app: renamed", "selector"),
		"promotion file: broken": one("PROMOTE", "release: [", "promote/NS.yaml"),
		"promotion file: unknown field": one("PROMOTE",
			"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-0\nthrough: full\nwho: me\n", "who"),
		"promotion file: unknown decision": one("PROMOTE",
			"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-0\ndecision: please\n", "decision", "please"),
		"promotion file: no release":    one("PROMOTE", "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n", "release"),
		"promotion file: wrong version": one("PROMOTE", "apiVersion: gitrollout.dev/v7\nkind: Promotion\nrelease: h1-0\n", "gitrollout.dev/v7"),
	}
}

// TestBadInput commits many mistakes at once, each in a separate app, and a new version of a valid app. Each app with a mistake is held
// (State.Held) with a message that names file and field, and keeps its pods. The valid app's new version is applied.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const atOnce = 24
	inputs := badInputs()
	if len(inputs) < 60 {
		t.Fatalf("the table has %d rows, want at least 60", len(inputs))
	}
	base := newShop(2, "", "setWeight: 50", "pause: {}")
	w := newWorld(t, base.files())
	bad := []*world{w}
	for len(bad) < atOnce {
		bad = append(bad, w.beside())
	}
	other := testcluster.Shared(t).Namespace(t) + "-ok"
	config := configOf(other, w.ns, "")
	for _, b := range bad {
		config += fmt.Sprintf("- path: apps/%s\n  namespace: %s\n", b.app, b.ns)
		b.mend(base)
	}
	w.repo.Write(map[string]string{configFile: config})
	good := func(n int) {
		w.repo.Write(map[string]string{
			"apps/" + other + "/kustomization.yaml": "resources: [c.yaml]\n",
			"apps/" + other + "/c.yaml":             fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {n: \"%d\"}\n", n),
		})
	}
	good(0)
	w.repo.Commit("more apps")
	w.start()
	for _, b := range bad {
		b.pods.awaitReady(t, map[string]int{"v1": 2})
		b.awaitT(t, "healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	}
	n := 0
	for names := range slices.Chunk(slices.Sorted(maps.Keys(inputs)), atOnce) {
		n++
		good(n)
		marks := make([]int, len(names))
		for i, name := range names {
			marks[i] = bad[i].pods.mark()
			bad[i].spoil(base, inputs[name])
		}
		w.repo.Commit("mistakes")
		for i, name := range names {
			t.Run(name, func(t *testing.T) { bad[i].checkHeld(t, inputs[name]) })
		}
		awaitEqual(t, "the number of the other app, which goes on", fmt.Sprint(n), func() string {
			return w.kubectl("get", "configmap", "good", "-o", "jsonpath={.data.n}")
		})
		for i, name := range names {
			if moved := bad[i].pods.since(marks[i]); len(moved) > 0 {
				t.Errorf("%s: %d pod events", name, len(moved))
			}
			bad[i].mend(base)
		}
		w.repo.Commit("mended")
		for i, name := range names {
			bad[i].awaitT(t, name+": no longer held", func(s rollout.State) bool { return s.Held == nil && s.Phase == rollout.Healthy })
		}
	}
	for _, b := range bad {
		b.pods.awaitReady(t, map[string]int{"v1": 2})
		b.pods.wantStarted(t, map[string]int{"v1": 2}) // a mistake must not start a pod
	}
}

// beside returns another app of the same repository, in a separate namespace.
func (w *world) beside() *world {
	w.t.Helper()
	ns := w.cluster.Namespace(w.t)
	w.namespaces = append(w.namespaces, ns)
	return &world{t: w.t, repo: w.repo, server: w.server, cluster: w.cluster, ns: ns, app: ns, log: w.log, pods: watchPods(w.t, w.cluster, ns)}
}

// spoil writes a mistake to the worktree.
func (w *world) spoil(base shop, input badInput) {
	w.t.Helper()
	for name, content := range input.files {
		path := "apps/" + w.app + "/" + name
		if name == "PROMOTE" {
			path = rollout.PromotionPath("test", w.app)
		}
		if edit, ok := strings.CutPrefix(content, "EDIT\x00"); ok {
			old, with, _ := strings.Cut(edit, "\x00")
			content = strings.ReplaceAll(base.files()[name], old, with)
			if content == base.files()[name] {
				w.t.Fatalf("%q is not in %s", old, name)
			}
		}
		if content == "" {
			w.repo.Remove(path)
			continue
		}
		w.repo.Write(map[string]string{path: strings.ReplaceAll(content, "NS", w.ns)})
	}
}

// mend restores the app's original files in the worktree.
func (w *world) mend(base shop) {
	w.t.Helper()
	w.repo.Git("rm", "-rfq", "--ignore-unmatch", "apps/"+w.app, rollout.PromotionPath("test", w.app))
	w.write(base.files())
}

// checkHeld checks that the app is held, and that the message contains the wanted texts.
func (w *world) checkHeld(t *testing.T, input badInput) {
	held := w.awaitT(t, "held with a reason", func(s rollout.State) bool { return s.Held != nil }).Held.Message
	for _, want := range input.want {
		compare.Contains(t, held, strings.ReplaceAll(want, "NS", w.ns))
	}
	if len(held) > 600 || strings.Contains(held, "\n") || strings.Contains(held, "/tmp/") {
		t.Errorf("the reason is not one readable line: %d characters\n%.700s", len(held), held)
	}
}

// awaitT waits until ok accepts the recorded state, and fails the subtest after 20 seconds.
func (w *world) awaitT(t *testing.T, what string, ok func(rollout.State) bool) (s rollout.State) {
	t.Helper()
	within(t, 20*time.Second, what, func() bool { s = w.state(); return ok(s) }, func() any { return shown(s) })
	return s
}

// TestRepositoryTroubles causes three faults during a release: a failing Git server, an invalid configuration, and a force-push back to the
// release's commit. No fault starts or deletes a pod. A force-push to an earlier commit reverts the release.
func TestRepositoryTroubles(t *testing.T) {
	t.Parallel()
	app := newShop(4, "", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files()).start()
	first := w.repo.Head()
	w.awaitHealthy(first)
	second := w.stage("v2", app.at("v2").files())
	w.pods.awaitReady(t, map[string]int{"v1": 2, "v2": 2})

	w.server.Fault(gittest.Faults{Status: 503})
	w.pods.stays(t, time.Second)
	w.server.Fault(gittest.Faults{})

	good := w.repo.Show("main", configFile)
	w.repo.CommitFiles("break the configuration", map[string]string{configFile: "apps: ["})
	w.pods.stays(t, time.Second)
	w.repo.CommitFiles("mend it", map[string]string{configFile: good + "\n"})

	w.repo.ForcePush(second)
	w.pods.stays(t, time.Second)
	w.awaitPause(1)

	w.repo.ForcePush(first) // the branch no longer has the release's commit, so gitrollout rolls back
	w.await("healthy at the first version", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.pods.awaitReady(t, map[string]int{"v1": 4})
}
