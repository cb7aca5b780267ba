package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

const freezeAll = "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\n"

// follows fails the test unless the apps have taken a base and are Healthy.
func (w *sharedBase) follows(t *testing.T, base string, apps ...int) {
	t.Helper()
	for _, i := range apps {
		s := w.state(fmt.Sprintf("a%d", i))
		if !w.ran[base][s.App] || s.Phase != rollout.Healthy {
			t.Errorf("%s is %s, did not take %s, held %+v", s.App, s.Phase, base, s.Held)
		}
	}
}

func upTo(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// hours runs the world for n hours, and promotes the releases that wait for a user.
func (w *sharedBase) hours(n int) {
	for range 4 * n {
		w.run(15*time.Minute, false)
		w.promote()
	}
}

// first pushes the bad base bad1, and returns the number of the app that takes this base.
func (w *sharedBase) first(t *testing.T) int {
	t.Helper()
	w.start()
	w.run(10*time.Minute, false)
	w.pushFile("bad base", "base/version", "bad1")
	w.run(10*time.Second, false)
	for name := range w.ran["bad1"] {
		first, err := strconv.Atoi(name[1:])
		must(t, err)
		return first
	}
	t.Fatal("no app has the bad base")
	return 0
}

// TestFirstAppKeepsItsPlace checks that no second app takes a bad base while the first app is renamed, removed from Git, or cannot be
// rendered after a restart.
func TestFirstAppKeepsItsPlace(t *testing.T) {
	for name, do := range map[string]func(w *sharedBase, first int){
		"renamed": (*sharedBase).rename,
		"renamed before a restart": func(w *sharedBase, first int) {
			w.rename(first)
			w.start()
		},
		"renamed with an error at the head": func(w *sharedBase, first int) {
			w.rename(first)
			w.own("invalid push", first, "invalid1")
		},
		"removed": (*sharedBase).remove,
		"removed before a restart": func(w *sharedBase, first int) {
			w.remove(first)
			w.run(time.Minute, false)
			w.start()
		},
		"a change without an effect": func(w *sharedBase, first int) {
			w.pushFile("note", fmt.Sprintf("apps/a%d/note", first), "see the wiki")
		},
		"an error at the head": func(w *sharedBase, first int) { w.own("invalid push", first, "invalid1") },
		"an error at the head before a restart": func(w *sharedBase, first int) {
			w.own("invalid push", first, "invalid1")
			w.run(time.Minute, false)
			w.start()
		},
		"errors of many apps before a restart": func(w *sharedBase, first int) {
			for i := range 5 {
				w.own("invalid push", i, "invalid1")
			}
			w.own("invalid push", first, "invalid1")
			w.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pumps := range []bool{false, true} {
				w := newSharedBase(t, 1, 14)
				w.pumps = pumps
				do(w, w.first(t))
				w.hours(6)
				if w.failure != "" {
					t.Error(w.failure)
				}
			}
		})
	}
}

// TestSharedChangePassesUnhealthyApps checks that all healthy apps take a shared change without a user's help, even if other apps are
// unhealthy.
func TestSharedChangePassesUnhealthyApps(t *testing.T) {
	w := newSharedWorld(t, 1, 14, baseRenderer{plain: true}, nil)
	w.cluster.Kube.Fate = func(version string) kube.Lifetime {
		return kube.Lifetime{Never: strings.HasSuffix(version, "sick"), Ready: time.Second}
	}
	w.start()
	w.run(10*time.Minute, false)
	for i := range 6 {
		w.own("own push", i, "sick")
	}
	w.hours(1)
	if s := w.state("a0"); s.Unhealthy == "" {
		t.Fatalf("a0 is %s", s.Phase)
	}
	for i := range 5 {
		base := fmt.Sprintf("fine%d", i)
		w.pushFile("base", "base/version", base)
		w.hours(2)
		w.follows(t, base, upTo(6, 14)...)
	}
}

// TestSharedChangeInAFreeze checks that the records stay unchanged during a freeze, and that apps take a shared change after the freeze.
func TestSharedChangeInAFreeze(t *testing.T) {
	w := newSharedBase(t, 1, 14)
	w.start()
	w.run(10*time.Minute, false)
	w.pushFile("freeze", rollout.FreezePath(testCluster), freezeAll)
	w.pushFile("good base", "base/version", "good1")
	w.run(20*time.Minute, false)
	before := len(w.event.Commits)
	w.run(time.Hour, false)
	if n := len(w.event.Commits) - before; n > 0 {
		t.Errorf("%d commits during the freeze: %q", n, w.event.Commits[before:min(before+6, len(w.event.Commits))])
	}
	w.pushFile("end of freeze", rollout.FreezePath(testCluster), "")
	w.hours(6)
	w.follows(t, "good1", 0, 1, 2, 3, 4, 6, 13)
}

// TestTwoSharedChanges checks that apps take a shared change while another shared change is stopped.
func TestTwoSharedChanges(t *testing.T) {
	two := func(_ rollout.Tree, app string) string {
		if len(app) == 2 || app < "a13" {
			return "base/version"
		}
		return "other/version"
	}
	w := newSharedWorld(t, 1, 26, baseRenderer{base: two}, map[string]string{"other/version": "good0"})
	w.start()
	w.run(10*time.Minute, false)
	w.commit("both", map[string][]byte{"base/version": []byte("bad1"), "other/version": []byte("good2")})
	w.hours(8)
	if w.failure != "" {
		t.Error(w.failure)
	}
	w.follows(t, "good2", upTo(13, 19)...)
}

// TestSharedChangesTurnedOff checks that all apps take a shared change at once if the settings disable the wait, or if few apps are left.
func TestSharedChangesTurnedOff(t *testing.T) {
	for name, edits := range map[string]map[string][]byte{
		"off": {rollout.ConfigPath(testCluster): []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nsharedChanges: {over: 0}\n" +
			"apps:\n- {path: apps/*, namespace: " + namespace + "}\n")},
		"few apps are left": {"apps/a10/kustomization.yaml": nil, "apps/a10/version": nil, "apps/a11/kustomization.yaml": nil,
			"apps/a11/version": nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharedBase(t, 1, 12)
			w.start()
			w.run(10*time.Minute, false)
			w.pushFile("good base", "base/version", "good1")
			w.run(2*time.Minute, false)
			w.commit(name, edits)
			w.run(time.Minute, false)
			for i := range 10 {
				if s := w.state(fmt.Sprintf("a%d", i)); s.Held != nil {
					t.Errorf("%s is held: %+v", s.App, s.Held)
				}
			}
		})
	}
}

// TestNewSharedFile checks that only one app takes a new file that all apps begin to read in one commit.
func TestNewSharedFile(t *testing.T) {
	named := func(tree rollout.Tree, app string) string {
		if entry, found, _ := tree.Lookup("apps/" + app + "/base"); found {
			text, _ := tree.ReadBlob(entry.ID)
			return string(text)
		}
		return "base/version"
	}
	w := newSharedWorld(t, 1, 20, baseRenderer{base: named}, nil)
	w.start()
	w.run(10*time.Minute, false)
	edits := map[string][]byte{"base2/version": []byte("bad1"), "base/version": nil}
	for i := range 20 {
		edits[fmt.Sprintf("apps/a%d/base", i)] = []byte("base2/version")
	}
	w.commit("base2", edits)
	w.hours(6)
	if w.failure != "" {
		t.Error(w.failure)
	}
}

// TestSharedBaseOfPlainApps checks that only one app without a Rollout document takes a bad base, though such an app has no steps.
func TestSharedBaseOfPlainApps(t *testing.T) {
	w := newSharedWorld(t, 1, 20, baseRenderer{plain: true}, nil)
	w.start()
	w.run(10*time.Minute, false)
	w.pushFile("bad base", "base/version", "bad1")
	w.hours(6)
	if w.failure != "" {
		t.Error(w.failure)
	}
	w.pushFile("revert", "base/version", "good0")
	w.run(time.Hour, false)
	w.pushFile("good base", "base/version", "good3")
	w.hours(4)
	w.follows(t, "good3", 0, 1, 2, 3, 4, 6, 18)
	before := len(w.event.Commits)
	if w.run(time.Hour, false); len(w.event.Commits) > before {
		t.Errorf("recorded again: %q", w.event.Commits[before:])
	}
}

// TestRevertOfASharedChange checks that recently changed apps take the revert of a base at once, although another app has rejected a
// version with the older base.
func TestRevertOfASharedChange(t *testing.T) {
	w := newSharedBase(t, 1, 14)
	w.start()
	w.run(10*time.Minute, false)
	w.pushFile("base", "base/version", "fine0") // all apps use this base
	w.hours(12)
	w.cluster.Kube.Fate = func(version string) kube.Lifetime {
		return kube.Lifetime{Never: strings.HasSuffix(version, "broken"), Ready: time.Second}
	}
	w.pushFile("own push", "apps/a1/version", "broken")
	w.hours(2)
	w.pushFile("own push", "apps/a1/version", "v1")
	w.pushFile("base", "base/version", "fine1")
	w.hours(12)
	w.follows(t, "fine1", 0, 1, 2, 3, 4, 6, 13)
	for _, app := range []string{"a2", "a4", "a6"} {
		w.pushFile("own push", "apps/"+app+"/version", "v9")
	}
	w.hours(1)
	if n := len(w.state("a1").Rejected); n != 1 {
		t.Errorf("a1 has %d rejections", n)
	}
	w.pushFile("revert", "base/version", "fine0")
	w.run(30*time.Second, false)
	for _, app := range []string{"a2", "a4", "a6"} {
		if s := w.state(app); s.Held != nil || s.Release == nil {
			t.Errorf("%s is %s, held %+v", app, s.Phase, s.Held)
		}
	}
}

// TestRevertWithANewSharedFile checks that a revert of base/version does not bring a changed base/config to a second app.
func TestRevertWithANewSharedFile(t *testing.T) {
	w := newSharedWorld(t, 1, 20, fleetRenderer{}, map[string]string{"base/config": "c0"})
	w.start()
	w.run(10*time.Minute, false)
	w.pushFile("base", "base/version", "fine1")
	w.hours(12)
	w.pushFile("config", "base/config", "c1")
	w.run(2*time.Minute, false)
	w.pushFile("revert", "base/version", "good0")
	w.run(5*time.Minute, false)
	var have []string
	for i := range 20 {
		app := fmt.Sprint("a", i)
		files := w.git.Files(w.state(app).Source)
		if files["base/config"] == "c1" {
			have = append(have, app)
		}
	}
	if len(have) > 1 {
		t.Errorf("c1 runs in %v", have)
	}
}
