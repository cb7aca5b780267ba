package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// rename moves shop's folder, optionally with other files of an app.
func (p *proposing) rename(from, to string, files map[string]string) {
	p.t.Helper()
	edits := map[string][]byte{}
	for name, content := range p.git.Files(p.head()) {
		rest, below := strings.CutPrefix(name, "apps/"+from+"/")
		if !below {
			continue
		}
		if other := files["apps/shop/"+rest]; other != "" {
			content = other
		}
		edits[name], edits["apps/"+to+"/"+rest] = nil, []byte(content)
	}
	p.commit(fmt.Sprintf("%s is %s", from, to), edits)
	p.settle()
}

// pods returns the names of the ready pods, by version.
func (p *proposing) pods() string {
	var all []string
	for _, d := range p.cluster.Kube.Deployments {
		for _, set := range d.Sets {
			for _, pod := range set.Pods {
				all = append(all, pod.Name)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// serving returns the image of a Deployment.
func (p *proposing) serving(deployment string) string {
	for _, d := range p.cluster.Kube.Deployments {
		if d.Workload.Name == deployment {
			_, image, _ := strings.Cut(d.Template, `"image":"`)
			image, _, _ = strings.Cut(image, `"`)
			return image
		}
	}
	return ""
}

// tick advances the clock by a minute.
func (p *proposing) tick() {
	p.t.Helper()
	if err := p.wait(time.Minute); err != nil {
		p.t.Fatal(err)
	}
	p.settle()
}

// promoted promotes the release in flight, and waits for its end.
func (p *proposing) promoted() {
	if err := p.merge([]string{"shop", "promote"}); err != nil {
		p.t.Fatal(err)
	}
	p.settle()
	p.tick()
}

// TestRenamedAppGoesOn renames an app in every state. No pod moves, and the release continues under the new name. A
// rollback finds its target under the old name, and nothing of the old name remains.
func TestRenamedAppGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		before func(p *proposing) // at the gate of v2
		rename func(p *proposing)
		phase  rollout.Phase
		moves  bool // pods may
		after  string
		want   string // the version that serves in the end
	}{
		"at rest":             {func(p *proposing) { p.promoted() }, func(p *proposing) { p.rename("shop", "store", nil) }, rollout.Healthy, false, "", "shop:v2"},
		"at a gate, promoted": {nil, func(p *proposing) { p.rename("shop", "store", nil) }, rollout.Paused, false, "promote", "shop:v2"},
		"at a gate, aborted":  {nil, func(p *proposing) { p.rename("shop", "store", nil) }, rollout.Paused, false, "abort", "shop:v1"},
		"at a gate, on hold": {func(p *proposing) {
			p.files("hold", promotionOf(p.state("shop").Release.Hash, "decision: hold\n"))
		}, func(p *proposing) { p.rename("shop", "store", nil) }, rollout.Paused, false, "promote", "shop:v2"},
		"twice": {nil, func(p *proposing) {
			p.rename("shop", "market", nil)
			p.rename("market", "store", nil)
		}, rollout.Paused, false, "abort", "shop:v1"},
		"while gitrollout is stopped": {nil, func(p *proposing) {
			p.gitDown = true
			p.rename("shop", "store", nil)
			p.gitDown = false
			p.start()
			p.settle()
		}, rollout.Paused, false, "promote", "shop:v2"},
		"and restarted": {nil, func(p *proposing) {
			p.rename("shop", "store", nil)
			p.start()
			p.settle()
		}, rollout.Paused, false, "abort", "shop:v1"},
		"with nothing in it at first": {nil, func(p *proposing) {
			p.rename("shop", "store", map[string]string{"apps/shop/app.yaml": " "})
			p.files("the app's files", map[string]string{"apps/store/app.yaml": twoApps("v2")["apps/shop/app.yaml"]})
		}, rollout.Paused, false, "promote", "shop:v2"},
		"emptied before": {nil, func(p *proposing) {
			p.files("nothing", map[string]string{"apps/shop/app.yaml": " "})
			p.rename("shop", "store", nil)
			p.files("the app's files", map[string]string{"apps/store/app.yaml": twoApps("v2")["apps/shop/app.yaml"]})
		}, rollout.Paused, false, "promote", "shop:v2"},
		"with another version": {nil, func(p *proposing) {
			p.rename("shop", "store", twoApps("v3"))
			for range 3 {
				p.tick()
			}
		}, rollout.Paused, true, "promote", "shop:v3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(t)
			if c.before != nil {
				c.before(p)
			}
			old, pods := p.state("shop"), p.pods()
			c.rename(p)
			is := p.state("store")
			if is.Phase != c.phase || is.Held != nil || is.Stable == nil || is.Stable.Hash != old.Stable.Hash {
				t.Fatalf("it is %s, held %+v, stable %+v; it was stable at %+v\n%s", is.Phase, is.Held, is.Stable, old.Stable, p.log.String())
			}
			if now := p.pods(); !c.moves && now != pods {
				t.Errorf("pods were %s and are %s", pods, now)
			}
			if is.Serial <= old.Serial || len(is.Inventory) == 0 {
				t.Errorf("the serial is %d after %d, the inventory %v", is.Serial, old.Serial, is.Inventory)
			}
			for _, gone := range []string{"shop", "market"} {
				if s := p.state(gone); s.App != "" {
					t.Errorf("there is a record of %s: %s, held %+v", gone, s.Phase, s.Held)
				}
				if head := p.git.Head("gitrollout/promote/sim/" + gone); head != "" {
					t.Errorf("there is a proposal of %s", gone)
				}
			}
			if c.after != "" {
				if err := p.decide(rollout.Verb(c.after), []string{"store"}); err != nil {
					t.Fatal(err)
				}
				p.settle()
				for range 5 {
					p.tick()
				}
			}
			if got := p.state("store"); got.Release != nil && c.after != "" || p.serving("shop") != c.want {
				t.Errorf("in the end it is %s, and %s serves, want %s", got.Phase, p.serving("shop"), c.want)
			}
			if other := p.state("till"); other.Phase != rollout.Paused {
				t.Errorf("the other app is %s", other.Phase)
			}
		})
	}
}

// TestRenamedAppKeepsTheJobsOfItsNewName renames an app with its Deployment and restores the Deployment's name while a
// Job before the new app's first deployment runs. The record keeps that Job and the ConfigMap that it uses.
func TestRenamedAppKeepsTheJobsOfItsNewName(t *testing.T) {
	p := newProposing(t)
	p.promoted()
	app := twoApps("v2")["apps/shop/app.yaml"]
	const hook = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: " +
		"{gitrollout.dev/hook: before}}\nspec: {template: " +
		"{spec: {restartPolicy: Never, containers: [{name: m, image: m, envFrom: [{configMapRef: {name: extra}}]}]}}}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"
	p.ends["migrate"] = rollout.JobState{}
	p.rename("shop", "store", map[string]string{"apps/shop/app.yaml": strings.ReplaceAll(app, "shop", "store") + hook})
	is := p.state("store")
	if len(is.Hooks) != 1 || is.Hooks[0].Phase != rollout.HookRunning {
		t.Fatalf("its hooks are %+v, held %+v", is.Hooks, is.Held)
	}
	p.files("the Deployment's old name", map[string]string{"apps/store/app.yaml": app})
	was := is.Hooks[0]
	is = p.state("store")
	if is.Stable == nil || len(is.Hooks) != 1 || is.Hooks[0].Job != was.Job || is.Hooks[0].Phase != rollout.HookRunning {
		t.Fatalf("stable %+v, hooks %+v, held %+v", is.Stable, is.Hooks, is.Held)
	}
	p.ends["migrate"] = rollout.JobState{Complete: true}
	p.tick()
	if is = p.state("store"); is.Phase != rollout.Healthy || is.Hooks[0].Phase != rollout.HookSucceeded {
		t.Errorf("it is %s, its hooks are %+v", is.Phase, is.Hooks)
	}
	if extra := (rollout.Ref{Kind: "ConfigMap", Namespace: "default", Name: "extra"}); p.cluster.objects[extra] != nil {
		t.Errorf("%s is left", extra)
	}
}

// TestRenamedAppPrunesBeforeTheNextLook renames an app with a recorded object that has just left Git and still exists
// under the old name. The object is pruned, with or without another fetch before the next visit.
func TestRenamedAppPrunesBeforeTheNextLook(t *testing.T) {
	for _, looks := range []bool{true, false} {
		p := newProposing(t)
		p.promoted()
		pass := func(fetch bool) {
			p.touch()
			for ended := p.process.Begin(p.cluster.Kube.Now, fetch); !ended; {
				ended = p.process.Resume(p.outcome(p.process.next))
			}
		}
		without := twoApps("v2")["apps/shop/app.yaml"]
		with := without + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"
		p.files("a ConfigMap", map[string]string{"apps/shop/app.yaml": with})
		p.commit("no ConfigMap", map[string][]byte{"apps/shop/app.yaml": []byte(without)})
		pass(true)
		extra := rollout.Ref{Kind: "ConfigMap", Namespace: "default", Name: "extra"}
		if live := p.cluster.objects[extra]; live == nil || live.app != "shop" {
			t.Fatalf("%s of shop is not there any more: %v", extra, p.cluster.Objects())
		}
		edits := map[string][]byte{}
		for name, content := range p.git.Files(p.head()) {
			if rest, below := strings.CutPrefix(name, "apps/shop/"); below {
				edits[name], edits["apps/store/"+rest] = nil, []byte(content)
			}
		}
		p.commit("shop is store", edits)
		pass(true)
		for range 4 {
			pass(looks)
		}
		if is := p.state("store"); is.Phase != rollout.Healthy || slices.Contains(is.Inventory, extra) {
			t.Errorf("it is %s, held %+v, inventory %v", is.Phase, is.Held, is.Inventory)
		}
		if live := p.cluster.objects[extra]; live != nil {
			t.Errorf("with looks at Git %t, %s of %s is there, and on no app's record", looks, extra, live.app)
		}
	}
}

// TestRestartWithoutAConfiguration reverts a release after a restart with an unreadable configuration. The
// permissions of an app and the folder of its objects come from the recorded commits, under the app's name there.
func TestRestartWithoutAConfiguration(t *testing.T) {
	for _, tc := range []string{"shop", "store", "shop, at a commit that has a slip"} {
		t.Run(tc, func(t *testing.T) {
			p := newProposing(t)
			name, _, hadSlip := strings.Cut(tc, ",")
			if name != "shop" {
				p.rename("shop", name, nil)
			}
			if hadSlip {
				good := p.git.Files(p.git.Head("main"))[rollout.ConfigPath("sim")]
				p.files("a slip", map[string]string{rollout.ConfigPath("sim"): "apps: ["})
				p.files("settings", map[string]string{"apps/shop/app.yaml": strings.Replace(twoApps("v1")["apps/shop/app.yaml"],
					"setWeight: 50", "setWeight: 20", 1)})
				p.files("no slip", map[string]string{rollout.ConfigPath("sim"): good})
				p.settle()
			}
			was := p.state(name)
			p.files("a slip", map[string]string{rollout.ConfigPath("sim"): "apps: ["})
			p.start()
			p.files("v1 again", map[string]string{"apps/" + name + "/app.yaml": twoApps("v1")["apps/shop/app.yaml"]})
			for range 5 {
				p.tick()
			}
			is := p.state(name)
			if is.Phase != rollout.Healthy || p.serving("shop") != "shop:v1" {
				t.Errorf("it is %s, held %+v, and %s serves", is.Phase, is.Held, p.serving("shop"))
			}
			if !slices.Equal(is.Inventory, was.Inventory) {
				t.Errorf("its objects are %v, and were %v", is.Inventory, was.Inventory)
			}
			if n := len(p.cluster.Kube.Deployments); n != 2 {
				t.Errorf("there are %d Deployments of 2 apps", n)
			}
		})
	}
}
