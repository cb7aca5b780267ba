package main

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

const configFile = ".gitrollout/test/config.yaml"

// TestTroubleAtTheStart starts a process while Git is unreachable or the configuration is invalid. A pass returns an error and writes
// nothing. After the repair, the process continues without a restart.
func TestTroubleAtTheStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config string // the content of the configuration; "-" for no file, "" for a valid configuration
		want   string
	}{
		"Git away":      {"", "fetch"},
		"missing":       {"-", configFile + ": does not exist; commit a Config there"},
		"not YAML":      {"apps: [", configFile + ": is not valid YAML"},
		"unknown field": {"apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napp: []\n", "app: is not a known field"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			good := w.repo.Show("main", configFile)
			switch tt.config {
			case "":
				w.server.Fault(gittest.Faults{Status: 503})
			case "-":
				w.repo.Remove(configFile).Commit("no configuration")
			default:
				w.configure(tt.config)
			}
			p := w.start()
			for range 3 {
				w.wantError(p.pass(), tt.want)
			}
			if w.repo.Ref(stateBranch) != "" || w.api.count() > 0 {
				t.Errorf("something was done: %v", w.api.since(0))
			}
			w.server.Fault(gittest.Faults{})
			p.awaitHealthy(w.configure(good))
		})
	}
}

// TestOneBadFolder checks a folder that cannot be an app, because its name is in use or invalid. Each pass returns an
// error with the reason. The valid app is still released and reverted.
func TestOneBadFolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ folder, entry, want string }{
		"a name that is taken": {"twin", "- {path: twin, name: APP}", "are both the app"},
		"no name":              {"apps/No_Name", "", "which is not a name"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			text := w.config("- path: apps/*") + strings.ReplaceAll(tt.entry, "APP", w.app) + "\n"
			w.repo.CommitFiles("a bad folder", map[string]string{
				configFile: text, tt.folder + "/kustomization.yaml": "resources: []\n",
			})
			p := w.startHealthy()
			w.wantError(p.pass(), tt.want)
			s := p.awaitPaused(w.pushVersion("v2"))
			p = p.restart()
			w.decide(s.Release.Hash, "abort", "")
			p.awaitPhase(rollout.Degraded)
			p = p.restart()
			p.awaitPaused(w.pushVersion("v3"))
			w.pushImage("v1")
			p.await("reverted", func(s rollout.State) bool { return s.Phase == rollout.Healthy && w.image() == "v1" })
		})
	}
}

// TestConfigurationBreaksLater makes the configuration invalid during a release. Until the repair, the release does not advance, even if
// its pause ends. Users can still abort and revert. After the repair, the app continues.
func TestConfigurationBreaksLater(t *testing.T) {
	t.Parallel()
	abort := func(w *loopWorld, s rollout.State) { w.decide(s.Release.Hash, "abort", "") }
	pushes := func(tag string) func(*loopWorld, rollout.State) {
		return func(w *loopWorld, _ rollout.State) { w.pushImage(tag) }
	}
	for name, tt := range map[string]struct {
		restarted bool
		back      func(w *loopWorld, s rollout.State) // nil: users do nothing
	}{
		"nothing":             {},
		"nothing, restarted":  {restarted: true},
		"an abort":            {back: abort},
		"an abort, restarted": {restarted: true, back: abort},
		"a revert":            {back: pushes("v1")},
		"a revert, restarted": {restarted: true, back: pushes("v1")},
		"another version":     {back: pushes("v3")},
		"a record of a stranger": {back: func(w *loopWorld, s rollout.State) {
			w.edit(stateBranch, map[string]string{"README": "by another writer"})
			abort(w, s)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tier.Rows(t, "an_abort,_restarted", "another_version")
			w, p := newHealthyWorld(t, version("v1", canaryOf("setWeight: 50", "pause: {duration: 1h}")))
			good := w.repo.Show("main", configFile)
			s := p.awaitPaused(w.pushImage("v2"))
			w.configure("apps: [")
			if tt.restarted {
				p = p.restart()
			}
			w.wantError(p.passes(3), "is not valid YAML")
			want := "v2"
			if tt.back != nil {
				want = "v1"
				tt.back(w, s)
				p.await("it goes back", func(s rollout.State) bool { return s.Phase == rollout.Aborting || s.Release == nil })
			}
			w.skew += time.Hour // the pause ends
			_ = p.passes(5)
			w.wantImage(want)
			if s := w.state(); tt.back == nil && s.Phase != rollout.Paused || s.Phase == rollout.Promoting {
				t.Errorf("it is %s", s.Phase)
			}
			w.configure(good)
			p.await("it goes on", func(s rollout.State) bool {
				return s.Phase != rollout.Paused && s.Phase != rollout.Aborting && s.Held == nil
			})
		})
	}
}

// TestAppLeavesGit removes an app from the configuration during a release, and restarts the process. The app is held with the reason in its
// record, and its objects stay. When the configuration lists the app again, the release continues at the same step.
func TestAppLeavesGit(t *testing.T) {
	w, p, before := newPausedWorld(t)
	second := before.Release.Commit
	good := w.repo.Show("main", configFile)
	pods := w.pods()
	writes := w.api.count()
	w.configure(strings.Replace(good, "apps/*", "app/*", 1))
	s := p.wantHeld("", "no longer lists "+w.app, "apps/"+w.app, "left as they are",
		"gitrollout remove "+w.app+" --cluster test")
	p.passWell(5)
	p = p.restart()
	p.passWell(5)
	if now := w.state(); !now.Equal(&s) {
		t.Errorf("a new process recorded %+v, want %+v", now, s)
	}
	w.configure(good)
	s = p.await("no longer held", func(s rollout.State) bool { return s.Held == nil && s.Phase == rollout.Paused })
	if s.Release.Commit != second || !s.Release.Since.Equal(before.Release.Since) ||
		!reflect.DeepEqual(s.Progress, before.Progress) {
		t.Errorf("it goes on as %+v %+v, want %+v %+v", s.Release, s.Progress, before.Release, before.Progress)
	}
	w.wantNoWritesSince(writes)
	w.wantPods(pods)
	w.repo.Merge(w.promotion())
	p.awaitHealthy(second)
}

// TestAppIsRemovedForGood checks that a user may delete the record of an app that Git no longer has. gitrollout does not write the record
// again.
func TestAppIsRemovedForGood(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	w.repo.Remove("apps/" + w.app).Commit("no longer needed")
	p.await("held", isHeld)
	w.edit(stateBranch, map[string]string{rollout.StatePath(w.app): ""})
	p.wantUnmoved(stateBranch, 5)
}

// TestAppThatNeverWas checks an app that leaves Git before its first record could be pushed. The app must get no record afterwards.
func TestAppThatNeverWas(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	w.server.Fault(gittest.Faults{RejectPushes: never})
	if err := p.pass(); err == nil {
		t.Error("no error")
	}
	w.repo.Remove("apps/" + w.app).Commit("changed my mind")
	w.server.Fault(gittest.Faults{})
	w.skew += time.Minute
	p.passWell(5)
	w.wantRecorded("")
}

// TestFolderMoves moves the app's folder while no release is in flight, and again while a release is paused. The moves restart no pod.
// After the second move, an abort rolls back to the same pods of v1.
func TestFolderMoves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		glob    string // the glob of the new configuration; "" keeps the first glob
		to      string // the new folder of the app; APP stands for the app
		restart bool
	}{
		"another pattern":                {"services/*", "services/APP", false},
		"another pattern, a new process": {"services/*", "services/APP", true},
		"both patterns":                  {"", "moved/APP", false},
		"both patterns, a new process":   {"", "moved/APP", true},
	} {
		t.Run(name, func(t *testing.T) {
			tier.Rows(t, "both_patterns,_a_new_process")
			w := newLoopWorld(t, nil)
			w.repo.Write(map[string]string{configFile: w.config("- path: apps/*", "- path: moved/*")})
			first := w.pushVersion("v1")
			p := w.start()
			move := func(from, to string) {
				t.Helper()
				from, to = strings.ReplaceAll(from, "APP", w.app), strings.ReplaceAll(to, "APP", w.app)
				if tt.glob != "" {
					w.repo.Write(map[string]string{configFile: w.config("- path: " + strings.Replace(to, w.app, "*", 1))})
				}
				w.repo.Git("add", "--all")
				w.repo.Git("mv", "-k", from, to+"x")
				w.repo.Git("mv", "-k", to+"x", to)
				w.repo.Commit("move to " + to)
				if tt.restart {
					p = p.restart()
				}
				p.await("the move recorded", func(s rollout.State) bool { return s.Path == to })
				p.passWell(3)
			}
			p.awaitHealthy(first)
			pods, generation := w.pods(), w.deployment().Generation
			w.repo.Write(map[string]string{strings.ReplaceAll(tt.to, "/APP", "/README"): "x", "apps/README": "x"})
			move("apps/APP", tt.to)
			if s := w.state(); s.Phase != rollout.Healthy || s.Stable.Commit != first {
				t.Errorf("at rest: %s at %s", s.Phase, s.Stable.Commit)
			}
			if d := w.deployment(); d.Generation != generation {
				t.Errorf("the move at rest made generation %d of %d", d.Generation, generation)
			}
			w.wantPods(pods)
			for file, content := range version("v2", halfThenGate) {
				w.repo.Write(map[string]string{strings.ReplaceAll(tt.to+"/"+file, "APP", w.app): strings.ReplaceAll(content, "APP", w.app)})
			}
			second := w.repo.Commit("v2")
			p.awaitPaused(second)
			if tt.restart {
				p = p.restart()
			}
			pods = w.pods()
			move(tt.to, "apps/APP")
			if s := w.state(); s.Phase != rollout.Paused || s.Release.Commit != second {
				t.Errorf("in flight: %s %+v", s.Phase, s.Release)
			}
			w.wantPods(pods)
			w.decide(w.state().Release.Hash, "abort", "")
			p.awaitPhase(rollout.Degraded)
			p.passWell(3)
			if got := w.pods(); w.image() != "v1" || !slices.Equal(got["v1"], pods["v1"]) {
				t.Errorf("image %s, pods %v", w.image(), got)
			}
		})
	}
}

// TestNamespaceChanges moves an app to another namespace while Git refuses pushes. gitrollout must not write to the cluster before Git has
// the record of the move.
func TestNamespaceChanges(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	other := w.kube.Namespace(t)
	w.namespaces = append(w.namespaces, other)
	p := w.startHealthy()
	w.server.Fault(gittest.Faults{RejectPushes: never})
	writes := w.api.count()
	moved := w.configure(strings.ReplaceAll(w.repo.Show("main", configFile), w.ns, other))
	_ = p.passes(10)
	w.wantNoWritesSince(writes)
	w.server.Fault(gittest.Faults{})
	w.skew += time.Minute
	start := w.repo.Ref(stateBranch)
	p.awaitHealthy(moved)
	p.await("the old namespace's objects gone", func(s rollout.State) bool {
		return !slices.ContainsFunc(s.Inventory, func(r rollout.Ref) bool { return r.Namespace == w.ns })
	})
	w.wantHistory(start, "APP first deployment", "APP healthy", "APP pruned")
}

// TestDeploymentIsRenamed renames the Deployment. The old Deployment stays until the new one is available. The next release goes through
// its steps. While the app is held after a second rename, `list` and `get` count the pods of the existing Deployment.
func TestDeploymentIsRenamed(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	start := w.repo.Ref(stateBranch)
	rename := func(tag, name string) map[string]string {
		files := version(tag, halfThenGate)
		for _, file := range []string{"app.yaml", "rollout.yaml"} {
			files[file] = strings.ReplaceAll(files[file], "name: APP}", "name: "+name+"}")
		}
		return files
	}
	p.awaitHealthy(w.push("rename", rename("v1", "APP-new")))
	p.await("the old one gone", func(s rollout.State) bool { return len(s.Inventory) == 3 })
	w.wantHistory(start, "APP first deployment", "APP healthy", "APP pruned Deployment/APP")
	w.push("v2 under another name", rename("v2", "APP-newest"))
	p.awaitHeld("left Git")
	for _, command := range []string{"get", "list"} {
		w.wantText(w.clusterCommand(exitOK, command, w.app), "2/2")
	}
	p.awaitPaused(w.push("v2", rename("v2", "APP-new")))
	if pods := w.pods(); len(pods["v1"]) != 2 || len(pods["v2"]) != 1 {
		t.Errorf("pods at the gate: %v", pods)
	}
}

// TestErrorsAreJoined checks that a pass returns two errors together: the error of an app, and the error of the configuration in Git.
func TestErrorsAreJoined(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	w.configure("apps: [")
	must(t, w.kube.Kube.CoreV1().ConfigMaps(w.ns).Delete(t.Context(), w.app, metav1.DeleteOptions{}))
	w.api.refuse("/configmaps/")
	await(t, "an error of Git and of the app", func() bool {
		err := p.passes(1)
		var joined interface{ Unwrap() []error }
		return errors.As(err, &joined) && len(joined.Unwrap()) == 2 && strings.Contains(err.Error(), "app "+w.app+": ")
	})
}
