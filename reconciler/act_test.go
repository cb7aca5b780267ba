package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// paused returns a test environment in which the release of v2 waits for a promotion (phase Paused).
func paused(t *testing.T, options func(*reconciler.Options)) *world {
	t.Helper()
	w := newWorld(t, options)
	w.follow("v2", shopAt("v2"))
	if s := w.state(); s.Phase != rollout.Paused || w.pods("v1") != 2 || w.pods("v2") != 2 {
		t.Fatalf("%s, %d pods of v1 and %d of v2", s.Phase, w.pods("v1"), w.pods("v2"))
	}
	return w
}

// TestRetreatIsRemembered applies a rollback while pushes to the state branch fail, so the record still has the release of v2. Neither this
// record nor a new commit of v2 may undo the rollback.
func TestRetreatIsRemembered(t *testing.T) {
	w := paused(t, nil)
	w.git.fails = fmt.Errorf("push: %w", rollout.ErrUnreachable)
	w.commit("v1 again", shopAt("v1"))
	for range 3 {
		if err := w.once(); !errors.Is(err, rollout.ErrUnreachable) {
			t.Fatalf("a pass without Git: %v", err)
		}
	}
	w.want(rollout.Paused, 0) // the rollback is applied, but not recorded
	w.commit("v2 again", shopAt("v2"))
	for range 5 {
		_ = w.once()
		w.want(rollout.Paused, 0)
	}
	w.git.fails = nil
	w.pass()
	w.want(rollout.Aborting, 0)
}

// TestStateMovedBack resets the state branch to the commit that the process read at its start. The process does not read its own pushes,
// but it must notice the reset and hold the app.
func TestStateMovedBack(t *testing.T) {
	w := paused(t, nil)
	w.commit("v1 again", shopAt("v1"))
	fetched := ""
	for range 50 {
		if w.state().Phase == rollout.Healthy {
			break
		}
		fetched, w.r = w.git.state(), reconciler.New(w.r.Options)
		_ = w.once()
	}
	w.want(rollout.Healthy, 0)
	w.git.Server.Set("Ann", stateBranch, fetched)
	w.passes(3)
	if h := w.state().Held; w.git.state() == fetched || h == nil || h.Reason != rollout.HeldRolledBack {
		t.Errorf("the record is %s, held %+v", w.state().Phase, h)
	}
}

// TestRetreatGoesOnWithoutGit checks that a rollback completes in the cluster although no push succeeds. Requests move
// back to v1 first. Pods of v2 are removed when proxies have loaded the routing.
func TestRetreatGoesOnWithoutGit(t *testing.T) {
	w, _, of := routedAtStep(t)
	if s := w.state(); s.Phase != rollout.Paused || w.pods("v2") == 0 {
		t.Fatalf("%s, %d pods of v2", s.Phase, w.pods("v2"))
	}
	w.git.fails = fmt.Errorf("push: %w", rollout.ErrUnreachable)
	w.commit("v1 again", of("v1"))
	w.passes(60)
	w.want(rollout.Paused, 0)
}

// TestBrokenPodsGoWithoutGit checks that the rollback of a StatefulSet completes although no push succeeds and the new pod never becomes
// ready. The StatefulSet controller does not replace an unready pod, so the reconciler deletes the pod.
func TestBrokenPodsGoWithoutGit(t *testing.T) {
	of := func(v string) map[string]string {
		set := strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "  replicas: 4", "  serviceName: shop\n  replicas: 4")
		return map[string]string{"apps/shop/app.yaml": set.Replace(version(v))}
	}
	files := of("v1")
	files[configFile], files["apps/shop/kustomization.yaml"] = plainConfig, "resources: [app.yaml]\n"
	w := worldOf(t, files, nil)
	w.cluster.Fate = func(v string) kube.Lifetime { return kube.Lifetime{Never: v == "v2"} }
	w.follow("v2", of("v2"))
	if s := w.state(); s.Phase != rollout.Progressing || w.pods("v2") == 0 {
		t.Fatalf("%s, %d pods of v2", s.Phase, w.pods("v2"))
	}
	w.git.fails = fmt.Errorf("push: %w", rollout.ErrUnreachable)
	w.commit("v1 again", of("v1"))
	w.passes(20)
	w.want(rollout.Progressing, 0)
	w.wantBackPods()
}

// TestPruneWaitsForTheRest checks that an object removed from Git is pruned only after all other objects are applied.
func TestPruneWaitsForTheRest(t *testing.T) {
	w := newWorld(t, nil)
	w.cluster.refuses = func(o rollout.Object) error {
		if o.Kind() == "Deployment" {
			return errors.New("the API server is busy")
		}
		return nil
	}
	w.commit("without the ConfigMap", withoutConfigMap)
	w.passes(3)
	compare.CheckNamed(t, "source while the Deployment is refused", w.git.main(), w.state().Source)
	compare.CheckNamed(t, "pruned", "[]", fmt.Sprint(w.cluster.pruned))
	w.cluster.refuses = nil
	w.settle()
	compare.CheckNamed(t, "pruned", "[core/ConfigMap/default/shop]", fmt.Sprint(w.cluster.pruned))
}

// telling returns an option for newWorld that calls tell with each app's report.
func telling(tell func(report.App)) func(*reconciler.Options) {
	return func(o *reconciler.Options) {
		o.Tell = func(r report.Report) {
			for _, a := range r.Apps {
				tell(a)
			}
		}
	}
}

// TestRefusedRecordIsReported checks that an app's reports have the error of a failed push until a push succeeds.
// Reports omit the error of a push that another writer's push overtook.
func TestRefusedRecordIsReported(t *testing.T) {
	refused := errors.New("rejected by the server: failed to update ref")
	for name, c := range map[string]struct{ fails, want error }{
		"refused":     {refused, fmt.Errorf("record in Git: %w", refused)},
		"unreachable": {rollout.ErrUnreachable, fmt.Errorf("record in Git: %w", rollout.ErrUnreachable)},
		"lost a race": {rollout.ErrConflict, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			w := newWorld(t, telling(func(a report.App) { last = a.Err }))
			w.commit("v2", shopAt("v2"))
			w.git.fails = c.fails
			w.passes(5)
			compare.CheckNamed(t, "reported", fmt.Sprint(c.want), fmt.Sprint(last))
			w.git.fails = nil
			w.settle()
			compare.CheckNamed(t, "reported after its end", "<nil>", fmt.Sprint(last))
		})
	}
}

// TestRefusedDeletionIsOnRecord checks that the recorded state has the error of a refused deletion until the API server accepts the
// deletion. The inventory lists the object while it exists. The cases remove an object or the whole app from Git.
func TestRefusedDeletionIsOnRecord(t *testing.T) {
	for name, files := range map[string]map[string]string{"an object leaves": withoutConfigMap, "the app leaves": withoutShop} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.follow("prune apps", map[string]string{configFile: pruneConfig})
			lists := func() bool {
				return slices.ContainsFunc(w.state().Inventory, func(ref rollout.Ref) bool { return ref.Kind == "ConfigMap" })
			}
			w.cluster.unprune = errors.New("ConfigMap default/shop: admission webhook denied the request")
			w.commit(name, files)
			w.passes(90)
			const denied = "prune of ConfigMap default/shop: admission webhook denied the request"
			compare.CheckNamed(t, "unhealthy, and listed", []any{denied, true}, []any{w.state().Unhealthy, lists()})
			w.recordsNothing(func() { w.passes(20) })
			w.cluster.unprune, w.cluster.hanging = nil, true
			w.passes(90)
			compare.CheckNamed(t, "unhealthy, and listed while it is being deleted", []any{"", true}, []any{w.state().Unhealthy, lists()})
			w.cluster.hanging = false
			w.settle()
			compare.CheckNamed(t, "listed, and pruned", [2]bool{false, true}, [2]bool{lists(), len(w.cluster.pruned) > 0})
		})
	}
}

// TestABrokenAppKeepsWhatItNames removes a ConfigMap from the app shop while another app cannot be rendered. If the other app's files
// contain the ConfigMap's name, the ConfigMap stays until the other app is corrected. Otherwise it is pruned.
func TestABrokenAppKeepsWhatItNames(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		stays bool
	}{
		"another name":  {"metadata: {name: other}\n", false},
		"the same name": {"metadata: {name: shop}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.follow("an app that cannot be rendered, and a ConfigMap less", map[string]string{
				"apps/broken/kustomization.yaml": "resources: [missing.yaml, app.yaml]\n", "apps/broken/app.yaml": c.file,
				"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/config.yaml": "",
			})
			compare.CheckNamed(t, "it stays", c.stays, len(w.cluster.pruned) == 0)
			if !c.stays {
				return
			}
			compare.Contains(t, w.state().Kept,
				"ConfigMap default/shop is not deleted", "app broken cannot be rendered, and may have this object", "correct apps/broken")
			commits := len(w.git.messages)
			w.recordsNothing(func() {
				for range 3 {
					w.now = w.now.Add(time.Minute)
					w.settle()
				}
			})
			w.commit("mended", map[string]string{"apps/broken/kustomization.yaml": "resources: []\n"})
			w.now = w.now.Add(time.Minute)
			w.settle()
			compare.CheckNamed(t, "mended: deleted, and kept", []any{true, ""}, []any{len(w.cluster.pruned) > 0, w.state().Kept})
			for _, message := range w.git.messages[commits:] {
				compare.CheckNamed(t, "mended, a commit says: "+message, false, strings.Contains(message, "keeps what left Git"))
			}
		})
	}
}

// TestLooksAgainAfterATransition checks that each transition makes its app due immediately, because the next transition
// may be possible at once. The next event in the cluster may be hours away.
func TestLooksAgainAfterATransition(t *testing.T) {
	w := newWorld(t, nil)
	w.r.Due(w.now.Add(time.Hour))
	w.commit("v2", shopAt("v2"))
	must(t, w.r.RunOnce(t.Context(), w.clock, true))
	compare.CheckNamed(t, "after the first transition", rollout.Progressing, w.state().Phase)
	compare.CheckNamed(t, "due at once", []string{"shop"}, w.r.Due(w.now))
	// A pass without a transition does not make its app due.
	w.settle()
	w.r.Due(w.now.Add(time.Hour))
	w.pass()
	compare.CheckNamed(t, "due at once while nothing has changed", "[]", fmt.Sprint(w.r.Due(w.now)))
}

// TestMessage checks the message of a commit on the state branch: a subject for users and trailers for programs.
func TestMessage(t *testing.T) {
	w := paused(t, nil)
	w.commit("slip", map[string]string{"apps/shop/app.yaml": "kind: [\n"})
	w.pass()
	first, last := w.git.messages[0], w.git.messages[len(w.git.messages)-1]
	release := string(w.state().Release.Hash)
	compare.Contains(t, last,
		"\n\nGitrollout-Cluster: prod\n", "\nGitrollout-Epoch: 1\n", "\nGitrollout-Source: "+w.git.main()+"\n",
		"\nGitrollout-App: shop phase=Paused release="+release+" step=2/2 weight=50 held=InvalidInput\n")
	if !strings.HasPrefix(last, "prod: shop held: ") || strings.Contains(first, "held=") {
		t.Errorf("the first message is %q, but the last %q", first, last)
	}
	w.commit("two apps", map[string]string{
		"apps/shop/app.yaml":           version("v2"),
		"apps/till/kustomization.yaml": "resources: [app.yaml]\n",
		"apps/till/app.yaml":           strings.ReplaceAll(version("v1"), "shop", "till"),
	})
	w.pass()
	compare.Contains(t, w.git.messages[len(w.git.messages)-1],
		" (+1 more)\n\n- till ", "\nGitrollout-App: shop phase=Paused ", "\nGitrollout-App: till phase=")
}

// unreadable is a commit whose files cannot be read.
type unreadable struct{ reconciler.Snapshot }

func (unreadable) Lookup(string) (rollout.Entry, bool, error) {
	return rollout.Entry{}, false, errors.New("no route")
}

// TestWhatARefusedCommitChanges checks which commits without a trusted signature hold an app: commits that change the app or its promotion
// file. The removal of the promotion file also holds the app, because the removal would shut the release's gate again.
func TestWhatARefusedCommitChanges(t *testing.T) {
	const file = ".gitrollout/prod/promote/shop.yaml"
	git := newMirror()
	first := git.commit("main", "base", map[string]string{
		configFile:                     plainConfig,
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": version("v1"), "other": "1",
	})
	with := func(edits map[string]string) reconciler.Snapshot {
		return git.Server.Commits[git.Server.Make(first, memgit.Change{Edits: reconciler.Contents(edits)})]
	}
	base := git.Server.Commits[first]
	promoted, broken := with(map[string]string{file: "a"}), with(map[string]string{"apps/shop/app.yaml": "kind: [\n"})
	reader, shop := source.NewReader("prod", render.New(render.InProcess{})), rollout.App{Name: "shop", Path: "apps/shop"}
	for name, c := range map[string]struct {
		from, to reconciler.Snapshot
		want     bool
	}{
		"another file":           {base, with(map[string]string{"other": "2"}), false},
		"the app":                {base, with(shopAt("v2")), true},
		"a promotion":            {base, promoted, true},
		"another promotion":      {promoted, with(map[string]string{file: "b"}), true},
		"the same promotion":     {promoted, with(map[string]string{file: "a", "other": "2"}), false},
		"a promotion taken away": {promoted, base, true},
		"the app is broken":      {base, broken, true},
		"the app is mended":      {broken, base, true},
		"a file is unreadable":   {base, unreadable{base}, true},
	} {
		t.Run(name, func(t *testing.T) {
			branch, err := reader.Open(c.from, nil)
			must(t, err)
			shop, _ := branch.Find("shop")
			at, held := reader.RenderHead(c.from, shop)
			compare.CheckNamed(t, "changes the app", c.want, reconciler.Changes(reader, c.to, shop, branch.Promotion(shop), at, held))
		})
	}
	_, held := reader.RenderHead(broken, shop)
	changed := reconciler.Changes(reader, broken, shop, source.Promotion{}, nil, held)
	compare.CheckNamed(t, "a file broken in the same way: held, and changed", [2]bool{true, false}, [2]bool{held != nil, changed})
}

// routed returns the files of examples/gateway as the files of the app shop, whose releases shift requests with an HTTPRoute.
func routed(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{
		configFile:                     plainConfig,
		"apps/shop/kustomization.yaml": "resources: [deployment.yaml, services.yaml, rollout.yaml, route.yaml]\n",
	}
	for _, name := range []string{"deployment", "services", "rollout", "route"} {
		data, err := os.ReadFile("../examples/gateway/apps/shop/base/" + name + ".yaml")
		must(t, err)
		files["apps/shop/"+name+".yaml"] = string(data)
	}
	return files
}

// routedAtStep returns a test environment in which a release of v2 is at a step. It also returns v1's files, and a function that returns
// any version's files.
func routedAtStep(t *testing.T) (w *world, files map[string]string, of func(version string) map[string]string) {
	t.Helper()
	files = routed(t)
	plain := files["apps/shop/deployment.yaml"]
	of = func(v string) map[string]string {
		image := strings.Replace(plain, "rollouts-demo", "rollouts-demo:"+v, 1)
		return map[string]string{"apps/shop/deployment.yaml": image}
	}
	maps.Copy(files, of("v1"))
	w = worldOf(t, files, nil)
	w.follow("v2", of("v2"))
	return w, files, of
}

// TestForgeIsToldAfterAStart checks which apps a new process reports to the forge: apps with a release in flight or with proposals. It also
// reports an app that released the newest commit, because the former process may not have reported the end of this release. A Healthy app
// at an older commit is not reported.
func TestForgeIsToldAfterAStart(t *testing.T) {
	w := newWorld(t, nil)
	config := plainConfig + "forge: {type: gitea, url: https://git.example.com, repository: acme/deploy}\n"
	told := func() (shown *report.Shown) {
		t.Helper()
		o := w.r.Options
		o.ShowsForge, o.Tell = true, func(r report.Report) {
			if r.Forge != nil && r.Forge.Resume {
				if shown != nil {
					t.Error("told twice")
				}
				shown = r.Forge
			}
		}
		w.r = reconciler.New(o)
		w.settle()
		if shown == nil {
			t.Fatal("the forge is told nothing")
		}
		return shown
	}
	w.commit("a forge", map[string]string{configFile: config})
	s := told()
	compare.CheckNamed(t, "an app older than the newest commit", []any{0, "acme/deploy"}, []any{len(s.Updates), s.Forge.Repository})
	w.follow("v2", shopAt("v2"))
	branch := rollout.ProposalBranch(rollout.ProposePromotion, "prod", "shop")
	if s := told(); len(s.Updates) != 1 || s.Updates[0].After.Phase != rollout.Paused || len(s.Updates[0].Proposals) != 1 ||
		!slices.Equal(s.Branches, []string{branch}) {
		t.Errorf("at a gate: %+v", s)
	}
	w.follow("v2, for an hour", map[string]string{
		"apps/shop/app.yaml": strings.Replace(version("v2"), "{pause: {}}", "{pause: {duration: 1h}}", 1),
	})
	if s := told(); len(s.Updates) != 1 || len(s.Updates[0].Proposals) > 0 {
		t.Errorf("on its way, with nothing to approve: %+v", s)
	}
	w.follow("v3, without steps", map[string]string{
		"apps/shop/app.yaml": strings.Replace(version("v3"), "[{setWeight: 50}, {pause: {}}]", "[{setWeight: 50}]", 1),
	})
	if s := told(); len(s.Updates) != 1 || s.Updates[0].After.Phase != rollout.Healthy ||
		s.Updates[0].After.Stable.Commit != w.git.main() {
		t.Errorf("the newest commit is released: %+v", s)
	}
}

// TestNothingAdvancesPastAnUnreadCommit checks that an unreadable head keeps a release paused beyond its timed pause, because the head may
// be a revert. Once the head is readable, the release continues.
func TestNothingAdvancesPastAnUnreadCommit(t *testing.T) {
	w := newWorld(t, nil)
	w.follow("v2, for an hour", map[string]string{
		"apps/shop/app.yaml": strings.Replace(version("v2"), "{pause: {}}", "{pause: {duration: 1h}}", 1),
	})
	w.want(rollout.Paused, 2)
	w.git.sees = func(heads *rollout.Heads) { heads.Main = "unread" }
	for range 3 {
		w.now = w.now.Add(2 * time.Hour)
		if err := w.once(); err == nil || !strings.Contains(err.Error(), "read commit unread") {
			t.Fatalf("the error of a pass is %v", err)
		}
	}
	w.want(rollout.Paused, 2)
	w.git.sees = nil
	w.settle()
	w.want(rollout.Healthy, 4)
}

// TestScalingWaitsForNothing checks that new replicas and autoscaler limits reach the cluster at once. A freeze or an abort stops only the
// new version in the same commit.
func TestScalingWaitsForNothing(t *testing.T) {
	more := func(replicas, least, most int, image string) map[string]string {
		return map[string]string{"apps/shop/more.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: cache}
spec:
  replicas: %d
  selector: {matchLabels: {app: cache}}
  template: {metadata: {labels: {app: cache}}, spec: {containers: [{name: app, image: %q}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: third}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: third}, minReplicas: %d, maxReplicas: %d}
`, replicas, image, least, most)}
	}
	w := newWorld(t, nil)
	var cache, third map[string]any
	w.cluster.refuses = func(o rollout.Object) error {
		switch o.Name() {
		case "cache":
			cache = o.Map("spec")
		case "third":
			third = o.Map("spec")
		}
		return nil
	}
	check := func(when string, replicas, least, most int64, image string) {
		t.Helper()
		containers := rollout.Object(cache).Map("template", "spec")["containers"].([]any)
		compare.CheckNamed(t, when, []any{replicas, least, most, image}, []any{
			cache["replicas"], third["minReplicas"], third["maxReplicas"], containers[0].(map[string]any)["image"],
		})
	}
	files := more(1, 2, 5, "cache:1")
	files["apps/shop/kustomization.yaml"] = "resources: [app.yaml, config.yaml, more.yaml]\n"
	w.follow("more", files)
	check("at first", 1, 2, 5, "cache:1")
	w.follow("a freeze", map[string]string{
		rollout.FreezePath("prod"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: a sale\n",
	})
	files = more(3, 4, 9, "cache:2")
	maps.Copy(files, shopAt("v2"))
	w.follow("v2, scaled", files)
	check("in a freeze", 3, 4, 9, "cache:1")
	compare.CheckNamed(t, "pods of v2", 0, w.pods("v2"))
	w.recordsNothing(w.settle)
	w.follow("scaled again", more(2, 3, 8, "cache:2"))
	check("again in a freeze", 2, 3, 8, "cache:1")
	w.follow("no freeze", map[string]string{rollout.FreezePath("prod"): ""})
	check("after the freeze", 2, 3, 8, "cache:2")
	w.follow("aborted", decision(w, "decision: abort"))
	check("after an abort", 2, 3, 8, "cache:1")
	w.follow("scaled after an abort", more(6, 3, 12, "cache:2"))
	check("scaled after an abort", 6, 3, 12, "cache:1")
	w.follow("reverted", func() map[string]string {
		files := more(6, 3, 12, "cache:1")
		maps.Copy(files, shopAt("v1"))
		return files
	}())
	check("after the revert", 6, 3, 12, "cache:1")
	compare.CheckNamed(t, "phase and recorded replicas", []any{rollout.Healthy, 0}, []any{w.state().Phase, len(w.state().Replicas)})
}

// TestReplicasWaitForTheirAutoscaler pushes a commit during a freeze. The commit sets replicas, and removes the autoscaler or gives it
// another target. The replicas reach the cluster only when the freeze ends.
func TestReplicasWaitForTheirAutoscaler(t *testing.T) {
	for name, then := range map[string]string{
		"removed":             "",
		"of another workload": scaler("autoscaling/v2", "HorizontalPodAutoscaler", "apiVersion: apps/v1, kind: Deployment, name: other"),
	} {
		for kind, now := range map[string]string{
			"HPA":  scaler("autoscaling/v2", "HorizontalPodAutoscaler", "apiVersion: apps/v1, kind: Deployment, name: shop"),
			"KEDA": scaler("keda.sh/v1alpha1", "ScaledObject", "name: shop"),
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				w := newWorld(t, nil)
				var last any
				w.cluster.refuses = func(o rollout.Object) error {
					if o.Kind() == "Deployment" {
						last = o.Map("spec")["replicas"]
					}
					return nil
				}
				unset := strings.Replace(version("v1"), "  replicas: 4\n", "", 1)
				w.follow("an autoscaler", map[string]string{"apps/shop/app.yaml": unset + now})
				w.follow("a freeze", map[string]string{
					rollout.FreezePath("prod"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: a sale\n",
				})
				w.follow("v2 with replicas", map[string]string{
					"apps/shop/app.yaml": strings.Replace(version("v2"), "replicas: 4", "replicas: 3", 1) + then,
				})
				compare.CheckNamed(t, "replicas in a freeze, and recorded ones", []any{nil, 0}, []any{last, len(w.state().Replicas)})
				w.follow("no freeze", map[string]string{rollout.FreezePath("prod"): ""})
				compare.CheckNamed(t, "replicas after the freeze", any(int64(3)), last)
			})
		}
	}
}

// scaler returns the YAML document of an autoscaler.
func scaler(api, kind, target string) string {
	most := map[string]string{"HorizontalPodAutoscaler": "maxReplicas", "ScaledObject": "maxReplicaCount"}[kind]
	return "---\napiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: shop}\n" +
		"spec: {scaleTargetRef: {" + target + "}, " + most + ": 9}\n"
}

// TestOtherKeysAskAnew checks that a promotion's approval is checked again when the trusted keys change.
func TestOtherKeysAskAnew(t *testing.T) {
	asked, who, keys := 0, "", "one"
	w := paused(t, func(o *reconciler.Options) {
		o.Approve = func(context.Context, string, string, string) (string, error) {
			if asked++; who == "" {
				return "", rollout.Invalidf("promote.yaml", "", "nobody signed it")
			}
			return who, nil
		}
	})
	w.git.sees = func(heads *rollout.Heads) { heads.Keys = keys }
	w.follow("promoted", promotion(w, "2"))
	w.want(rollout.Paused, 2)
	compare.CheckNamed(t, "an unsigned promotion is asked about", true, asked > 0)
	before := asked
	w.settle()
	compare.CheckNamed(t, "questions while nothing has changed", before, asked)
	keys, who = "two", "ann"
	w.settle()
	w.want(rollout.Healthy, 4)
}

// filesOfAStore returns edits that remove the files of the app shop. It also returns edits that add these files to an app named store.
func (w *world) filesOfAStore() (removed, moved map[string]string) {
	removed, moved = map[string]string{}, map[string]string{}
	for name, content := range w.git.Server.Files(w.git.main()) {
		if file, ours := strings.CutPrefix(name, "apps/shop/"); ours {
			removed[name], moved["apps/store/"+file] = "", content
		}
	}
	return removed, moved
}

// handOver runs ten passes, in which the app store takes over the record of the app shop. A pass may return ErrNotReady.
func (w *world) handOver() {
	w.Helper()
	for range 10 {
		if err := w.once(); err != nil && !errors.Is(err, source.ErrNotReady) {
			w.Fatal(err)
		}
	}
}

// TestRenamedAppIsNotPruned checks that a renamed app continues its former record, and that no object is pruned under the old name.
func TestRenamedAppIsNotPruned(t *testing.T) {
	w := newWorld(t, nil)
	w.follow("prune", map[string]string{configFile: pruneConfig})
	edits, moved := w.filesOfAStore()
	maps.Copy(edits, moved)
	before, said := w.state(), len(w.git.messages)
	w.commit("shop is a store", edits)
	w.handOver()
	after := w.stateOf("store")
	compare.CheckNamed(t, "phase, and former names", []any{rollout.Healthy, []string{"shop"}}, []any{after.Phase, after.Formerly})
	compare.CheckNamed(t, "stable", before.Stable.Hash, after.Stable.Hash)
	compare.CheckNamed(t, "the shop's record", "", w.state().App)
	compare.CheckNamed(t, "pruned", "[]", fmt.Sprint(w.cluster.pruned))
	// No commit message may say that the app shop has left Git.
	if told := w.git.messages[said:]; len(told) != 1 || !strings.HasPrefix(told[0], "prod: store is the new name of shop") {
		t.Errorf("recorded:\n%s", strings.Join(told, "\n"))
	}
}

// TestRemovedInRollback removes an app from the configuration during its rollback. After the rollback, no Service's selector may name a
// version, because the Service's next owner would not remove the version.
func TestRemovedInRollback(t *testing.T) {
	w, files, of := routedAtStep(t)
	isPinned := func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(w.cluster.Pins)), func(pin string) bool { return pin != "" })
	}
	compare.CheckNamed(t, "a Service selects one version at the step", true, isPinned())
	w.commit("v1 again", of("v1"))
	w.pass()
	compare.Check(t, rollout.Aborting, w.state().Phase)
	w.follow("no shop", map[string]string{configFile: strings.Replace(files[configFile], "apps/*", "apps/other", 1)})
	s := w.state()
	compare.CheckNamed(t, "in flight, held, and pinned", [3]bool{false, true, false}, [3]bool{s.Release != nil, s.Held != nil, isPinned()})
}

// TestRestartWithoutConfiguration restarts the process while the newest configuration is invalid. Only an older commit has the app's
// namespace. Until the process has read that commit, it must not render, apply or prune the app.
func TestRestartWithoutConfiguration(t *testing.T) {
	w := worldOf(t, map[string]string{
		configFile:                     plainConfig + "  namespace: shops\n",
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": version("v1"),
	}, nil)
	w.follow("v2", shopAt("v2"))
	w.commit("v1 again, and a slip", map[string]string{"apps/shop/app.yaml": version("v1"), configFile: "apps: ["})
	w.passes(20)
	compare.CheckNamed(t, "phase, and source", []any{rollout.Healthy, w.git.main()}, []any{w.state().Phase, w.state().Source})
	w.r = reconciler.New(w.r.Options)
	w.passes(20)
	for workload := range w.cluster.Deployments {
		compare.CheckNamed(t, "the namespace of Deployment "+workload.Name, "shops", workload.Namespace)
	}
	compare.CheckNamed(t, "pruned, and pods of v1", "[] 4", fmt.Sprint(w.cluster.pruned, w.pods("v1")))
}

// TestRestartAfterAnAppHasLeft removes an app's folder in a commit with an invalid configuration, which holds the app. A restarted process
// finds the reason that is already recorded, so it records nothing.
func TestRestartAfterAnAppHasLeft(t *testing.T) {
	w := newWorld(t, nil)
	w.commit("no shop, and a slip", map[string]string{
		"apps/shop/kustomization.yaml": "", "apps/shop/app.yaml": "", configFile: "apps: [",
	})
	w.passes(20)
	compare.Contains(t, fmt.Sprintf("%+v", w.state().Held), "no longer lists shop (apps/shop); its objects are left as they are")
	w.recordsNothing(func() {
		w.r = reconciler.New(w.r.Options)
		w.passes(20)
	})
	compare.CheckNamed(t, "pods of v1", 4, w.pods("v1"))
}

// TestRenamedWhileEmpty renames an app to a folder without objects. The old app's Held message names the new app, so that users do not
// remove the old app's record. When the folder gets objects, the new app takes over this record.
func TestRenamedWhileEmpty(t *testing.T) {
	w := newWorld(t, nil)
	edits, back := w.filesOfAStore()
	edits["apps/store/kustomization.yaml"] = "resources: []\n"
	w.follow("shop is a store, and empty", edits)
	want := "gitrollout remove shop --cluster prod; do not remove it if its new name is store: "
	compare.Contains(t, fmt.Sprintf("%+v", w.state().Held), want)
	w.recordsNothing(w.settle)
	compare.CheckNamed(t, "pods of v1", 4, w.pods("v1"))
	w.commit("its objects", back)
	w.handOver()
	compare.CheckNamed(t, "the store's former names, and pods", []any{[]string{"shop"}, 4}, []any{w.stateOf("store").Formerly, w.pods("v1")})
	// App "till" has other objects than app "store", so "store" cannot have been renamed to "till".
	w.follow("a till", map[string]string{
		"apps/till/kustomization.yaml": "resources: [map.yaml]\n",
		"apps/till/map.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\n",
	})
	gone := map[string]string{}
	for name := range back {
		gone[name] = ""
	}
	w.follow("no store", gone)
	if h := w.stateOf("store").Held; h == nil || !strings.HasSuffix(h.Message, "gitrollout remove store --cluster prod") {
		t.Errorf("held %+v", h)
	}
}

// TestRevertOfAMovedBranch refuses each push of a revert (autoRevert: push) with a conflict, as if another commit was
// pushed first. The process must fetch the new head, and must not propose the revert instead.
func TestRevertOfAMovedBranch(t *testing.T) {
	w := paused(t, func(o *reconciler.Options) { o.Source.Branch = "main" })
	w.follow("push reverts", map[string]string{configFile: plainConfig + "autoRevert: push\n"})
	w.git.refuse = func(u rollout.Update) error {
		if u.Branch == "main" {
			return fmt.Errorf("push: %w", rollout.ErrConflict)
		}
		return nil
	}
	w.commit("abort", decision(w, "decision: abort"))
	head, branch := w.git.main(), rollout.ProposalBranch(rollout.ProposeRevert, "prod", "shop")
	w.passes(20)
	compare.CheckNamed(t, "main", head, w.git.main())
	compare.CheckNamed(t, branch, "", w.git.Server.Head(branch))
	w.want(rollout.Degraded, 0)
}

// TestTwoWriters lets another writer push to the state branch during a pass. In the same pass, the process must read the branch and decide
// again. An exclusive process must stop instead.
func TestTwoWriters(t *testing.T) {
	other := rollout.Cluster{Cluster: "prod", UID: "uid", Writer: rollout.Writer{ID: "other", Epoch: 7}}
	data, err := other.Encode()
	must(t, err)
	for _, exclusive := range []bool{false, true} {
		w := newWorld(t, func(o *reconciler.Options) { o.Exclusive = exclusive })
		w.commit("v2", shopAt("v2"))
		w.git.refuse = func(rollout.Update) error {
			w.git.refuse = nil
			w.git.commit(stateBranch, "another writer", map[string]string{rollout.ClusterPath: string(data)})
			return fmt.Errorf("push: %w", rollout.ErrConflict)
		}
		err := w.once()
		compare.CheckNamed(t, "lost races, and deposed", fmt.Sprint(1, exclusive),
			fmt.Sprint(w.r.Stats().Lost, errors.Is(err, reconciler.ErrDeposed)))
		if !exclusive {
			must(t, err)
			compare.CheckNamed(t, "the phase", rollout.Progressing, w.state().Phase)
			compare.Contains(t, w.git.messages[len(w.git.messages)-1], "\nGitrollout-Epoch: 8\n") // this process is the writer again
		}
	}
}

// TestTries checks that a pass tries five times if each push loses a race. If fetch is false, the pass does not fetch before the first try.
func TestTries(t *testing.T) {
	for fetch, want := range map[bool][2]int{true: {5, 5}, false: {4, 5}} {
		w := newWorld(t, nil)
		w.commit("v2", shopAt("v2"))
		must(t, w.r.Look(w.Context()))
		var did [2]int // fetches and pushes
		w.git.sees = func(*rollout.Heads) { did[0]++ }
		w.git.refuse = func(rollout.Update) error { did[1]++; return rollout.ErrConflict }
		if err := w.r.RunOnce(w.Context(), w.clock, fetch); !errors.Is(err, rollout.ErrConflict) {
			t.Errorf("error %v, want a conflict", err)
		}
		compare.CheckNamed(t, fmt.Sprintf("fetches and pushes, with a first fetch %t", fetch), want, did)
	}
}

// TestAnotherWriterStopsNoRelease releases and promotes a version while another program overwrites a ConfigMap again
// and again. The release must complete. After the release, the app is unhealthy because of the other program.
func TestAnotherWriterStopsNoRelease(t *testing.T) {
	w := newWorld(t, nil)
	w.cluster.fights = fmt.Errorf("ConfigMap shop is changed by kim again and again: %w", rollout.ErrOverwritten)
	w.commit("v2", shopAt("v2"))
	w.passes(20) // without a release in flight, a pass fails because of the other program
	w.want(rollout.Paused, 2)
	compare.Contains(t, w.state().Reason, "kim")
	w.commit("promote", promotion(w, "full"))
	w.passes(20)
	compare.CheckNamed(t, "in flight, and new pods", []any{false, 4}, []any{w.state().Release != nil, w.pods("v2")})
	compare.Contains(t, w.state().Unhealthy, "kim")
}
