package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// gate is the strategy halfThenGate without "scaling: surge".
const gate = "    canary:\n      steps:\n      - setWeight: 50\n      - pause: {}\n"

// TestSteadyStateIsFree makes passes until apps with different strategies and phases need no more work. Then a pass
// without changes must cost only one look-up of Git refs, in the same process and in a new process.
func TestSteadyStateIsFree(t *testing.T) {
	kube := testcluster.Shared(t)
	repo := gittest.New(t)
	server := repo.HTTP(gittest.HTTPOptions{})

	blueGreen := "    blueGreen:\n      activeService: green\n      previewService: green-preview\n      autoPromotionEnabled: false\n"
	files := map[string]string{
		configFile:                         configOf(kube.Namespace(t), "- path: apps/*"),
		"apps/settings/kustomization.yaml": "configMapGenerator:\n- name: settings\n  literals: [colour=blue]\n",
		"apps/broken/kustomization.yaml":   "resources: [missing.yaml]\n",
	}
	for name, strategy := range map[string]string{"plain": "", "done": gate, "paused": gate, "green": blueGreen} {
		maps.Copy(files, appFiles(name, strategy, "v1"))
	}
	repo.CommitFiles("first versions", files)

	l := startLoop(t, server, kube)
	l.await(t, repo, "every app healthy, but for the one that cannot be built", func(s map[string]rollout.State) bool {
		for _, name := range []string{"settings", "plain", "done", "paused", "green"} {
			if s[name].Phase != rollout.Healthy {
				return false
			}
		}
		return s["broken"].Held != nil
	})
	for name, strategy := range map[string]string{"done": gate, "paused": gate, "green": blueGreen} {
		repo.Write(appFiles(name, strategy, "v2"))
	}
	second := repo.Commit("second versions")
	l.await(t, repo, "three releases paused", func(s map[string]rollout.State) bool {
		return paused(s["done"]) && paused(s["paused"]) && paused(s["green"])
	})
	repo.Merge("gitrollout/promote/test/done")
	l.await(t, repo, "the first of them healthy", func(s map[string]rollout.State) bool {
		return s["done"].Phase == rollout.Healthy && s["done"].Stable.Commit == second && paused(s["paused"]) && paused(s["green"])
	})

	l.atRest(t)
	refs := repo.Refs()
	const passes = 100
	idle := func(l *testLoop, name string) {
		t.Helper()
		before := l.costs()
		for range passes {
			l.pass(t)
		}
		compare.CheckNamed(t, "passes of "+name, costs{lookups: passes, requests: passes}, l.costs().minus(before))
		compare.CheckNamed(t, "refs after passes of "+name, refs, repo.Refs())
	}
	idle(l, "the first process")
	l.close()

	again := startLoop(t, server, kube)
	again.atRest(t)
	cost := again.costs()
	if cost.writes != 0 || cost.dryRuns != 0 || cost.pushes != 0 || cost.commits != 0 {
		t.Errorf("a new process cost %+v in an unchanged world, want no writes, dry runs, pushes or commits", cost)
	}
	// A new process renders each app at the head. It also renders the stable commit of each app with a release in flight.
	if apps, inFlight := 6, 2; cost.builds > apps+inFlight {
		t.Errorf("a new process rendered %d times, want at most %d apps and %d stable versions of those in flight",
			cost.builds, apps, inFlight)
	}
	idle(again, "the new process")
}

func paused(s rollout.State) bool { return s.Phase == rollout.Paused }

// appFiles returns the files of an app with a Deployment and two Services. If strategy is not "", the app also has a Rollout.
func appFiles(name, strategy, version string) map[string]string {
	resources := "resources:\n- app.yaml\n"
	manifest := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: app, image: "%[1]s:%[2]s", ports: [{containerPort: 8080}]}]}
`, name, version)
	for _, service := range []string{name, name + "-preview"} {
		manifest += fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {selector: {app: %s}, ports: [{port: 80, targetPort: 8080}]}
`, service, name)
	}
	files := map[string]string{"apps/" + name + "/app.yaml": manifest}
	if strategy != "" {
		resources += "- rollout.yaml\n"
		files["apps/"+name+"/rollout.yaml"] = fmt.Sprintf(`apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: %[1]s}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}
  strategy:
%[2]s`, name, strategy)
	}
	files["apps/"+name+"/kustomization.yaml"] = resources
	return files
}

// testLoop is a loop that makes a pass only when the test calls for one.
type testLoop struct {
	*loop
	ctx context.Context
}

func startLoop(tb testing.TB, server *gittest.Server, kube *testcluster.Cluster) *testLoop {
	tb.Helper()
	l, err := newLoop(tb.Context(), sourceOptions{repo: server.URL, branch: "main", cluster: "test"}, trustOptions{},
		clusterOptions{kubeconfig: kube.Kubeconfig}, writer{id: hostname()}, slog.New(slog.DiscardHandler),
		streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	must(tb, err)
	tb.Cleanup(l.close)
	return &testLoop{loop: l, ctx: tb.Context()}
}

// pass makes one pass, which polls Git and the cluster. A held app, for example one that cannot be rendered, causes no error.
func (l *testLoop) pass(tb testing.TB) {
	tb.Helper()
	must(tb, l.RunOnce(l.ctx, time.Now, true))
}

// await makes passes until the records of all apps satisfy a condition.
func (l *testLoop) await(tb testing.TB, repo *gittest.Repo, what string, ok func(map[string]rollout.State) bool) {
	tb.Helper()
	states := map[string]rollout.State{}
	defer func() {
		for name, s := range states {
			if tb.Failed() {
				tb.Logf("%s: %s %s %+v", name, s.Phase, s.Reason, s.Progress)
			}
		}
	}()
	await(tb, what, func() bool {
		l.pass(tb)
		states = statesOf(tb, repo)
		return ok(states)
	})
}

// atRest makes passes until, for a whole second, the passes have cost only look-ups of Git refs.
func (l *testLoop) atRest(tb testing.TB) {
	tb.Helper()
	quiet := time.Now()
	await(tb, "a second without cost", func() bool {
		before := l.costs()
		l.pass(tb)
		cost := l.costs().minus(before)
		if cost.lookups, cost.requests = 0, 0; cost != (costs{}) {
			quiet = time.Now()
		}
		return time.Since(quiet) >= time.Second
	})
}

// costs counts what a loop has done: requests to Git and to the API server, renders, decisions and commits.
type costs struct {
	requests, lookups, fetches, pushes int64 // Git
	writes, dryRuns, reads             int   // API
	builds, decided, commits           int
}

func (l *testLoop) costs() costs {
	g, c, s := l.created.Stats(), l.client.Stats(), l.Stats()
	return costs{
		requests: g.Requests, lookups: g.Lookups, fetches: g.Fetches, pushes: g.Pushes,
		writes: c.Writes, dryRuns: c.DryRuns, reads: c.Reads,
		builds: l.Renderer.(*render.Renderer).Builds(), decided: s.Decided, commits: s.Commits,
	}
}

func (c costs) minus(o costs) costs {
	return costs{
		requests: c.requests - o.requests, lookups: c.lookups - o.lookups, fetches: c.fetches - o.fetches, pushes: c.pushes - o.pushes,
		writes: c.writes - o.writes, dryRuns: c.dryRuns - o.dryRuns, reads: c.reads - o.reads,
		builds: c.builds - o.builds, decided: c.decided - o.decided, commits: c.commits - o.commits,
	}
}

// statesOf reads the records of all apps from the state branch. The keys are the names of the apps.
func statesOf(tb testing.TB, repo *gittest.Repo) map[string]rollout.State {
	tb.Helper()
	states := map[string]rollout.State{}
	if repo.Ref(stateBranch) == "" {
		return states
	}
	for _, file := range repo.Files(stateBranch) {
		if !strings.HasPrefix(file, "apps/") {
			continue
		}
		s, err := rollout.ParseState(file, []byte(repo.Show(stateBranch, file)))
		must(tb, err)
		states[s.App] = *s
	}
	return states
}
