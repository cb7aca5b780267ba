package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// moved returns edits that rename an app's folder. If content is not "", app.yaml in the new folder gets this content.
func (p *story) moved(from, to, content string) map[string][]byte {
	edits := map[string][]byte{}
	for name, is := range p.git.Files(p.head()) {
		rest, below := strings.CutPrefix(name, "apps/"+from+"/")
		if !below {
			continue
		}
		if rest == "app.yaml" {
			is = cmp.Or(content, is)
		}
		edits[name], edits["apps/"+to+"/"+rest] = nil, []byte(is)
	}
	return edits
}

func (p *story) rename(from, to, content string) {
	p.t.Helper()
	p.edit(fmt.Sprintf("%s is %s", from, to), p.moved(from, to, content))
}

// TestRenamedAppGoesOn renames app "shop" in several states. The release must continue under the new name. A rename without another version
// must replace no pod. An abort restores the version from before the rename. The old name's record and proposal must disappear.
func TestRenamedAppGoesOn(t *testing.T) {
	toStore := func(p *story) { p.rename("shop", "store", "") }
	fill := func(p *story) {
		p.files("the app's files", map[string]string{"apps/store/app.yaml": appFile("shop", "v2")})
	}
	for name, c := range map[string]struct {
		before func(p *story) // called while v2 is Paused
		rename func(p *story)
		phase  rollout.Phase // "": Paused
		moves  bool          // the rename may change pods
		after  rollout.Verb
		want   string // the image that serves in the end
	}{
		"at rest":             {before: (*story).promoted, rename: toStore, phase: rollout.Healthy, want: "shop:v2"},
		"at a gate, promoted": {rename: toStore, after: "promote", want: "shop:v2"},
		"at a gate, aborted":  {rename: toStore, after: "abort", want: "shop:v1"},
		"at a gate, on hold": {
			before: func(p *story) { p.decision("decision: hold\n") }, rename: toStore, after: "promote", want: "shop:v2",
		},
		"twice": {rename: func(p *story) {
			p.rename("shop", "market", "")
			p.rename("market", "store", "")
		}, after: "abort", want: "shop:v1"},
		"while gitrollout is stopped": {rename: func(p *story) {
			p.gitDown = true
			toStore(p)
			p.gitDown = false
			p.start()
			p.settle()
		}, after: "promote", want: "shop:v2"},
		"and restarted": {rename: func(p *story) {
			toStore(p)
			p.start()
			p.settle()
		}, after: "abort", want: "shop:v1"},
		"with nothing in it at first": {rename: func(p *story) {
			p.rename("shop", "store", " ")
			fill(p)
		}, after: "promote", want: "shop:v2"},
		"emptied before": {rename: func(p *story) {
			p.files("nothing", map[string]string{shopFile: " "})
			toStore(p)
			fill(p)
		}, after: "promote", want: "shop:v2"},
		"with another version": {rename: func(p *story) {
			p.rename("shop", "store", appFile("shop", "v3"))
			p.tick(3)
		}, moves: true, after: "promote", want: "shop:v3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atGates(t)
			if c.before != nil {
				c.before(p)
			}
			old, pods := p.state("shop"), p.pods()
			c.rename(p)
			is := p.state("store")
			if is.Phase != cmp.Or(c.phase, rollout.Paused) || is.Held != nil || is.Stable == nil || is.Stable.Hash != old.Stable.Hash {
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
				must(t, p.decide(c.after, []string{"store"}))
				p.settle()
				p.tick(5)
			}
			if got := p.state("store"); got.Release != nil && c.after != "" {
				t.Errorf("in the end it is %s", got.Phase)
			}
			p.checkServes("shop", c.want)
			p.checkPhase("till", rollout.Paused)
		})
	}
}

var extraMap = rollout.Ref{Kind: "ConfigMap", Namespace: "default", Name: "extra"}

const extraFile = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"

// TestRenamedAppKeepsTheJobsOfItsNewName renames an app and its Deployment. While the hook runs, a push restores the Deployment's old name,
// without the hook and its ConfigMap. The record must keep the hook's Job. After the Job's end, gitrollout deletes the ConfigMap.
func TestRenamedAppKeepsTheJobsOfItsNewName(t *testing.T) {
	p := atGates(t)
	p.promoted()
	const hook = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: " +
		"{gitrollout.dev/hook: before}}\nspec: {template: " +
		"{spec: {restartPolicy: Never, containers: [{name: m, image: m, envFrom: [{configMapRef: {name: extra}}]}]}}}\n"
	p.ends["migrate"] = rollout.JobState{}
	p.rename("shop", "store", appFile("store", "v2")+hook+extraFile)
	is := p.state("store")
	if len(is.Hooks) != 1 || is.Hooks[0].Phase != rollout.HookRunning {
		t.Fatalf("its hooks are %+v, held %+v", is.Hooks, is.Held)
	}
	p.files("the Deployment's old name", map[string]string{"apps/store/app.yaml": appFile("shop", "v2")})
	was := is.Hooks[0]
	is = p.state("store")
	if is.Stable == nil || len(is.Hooks) != 1 || is.Hooks[0].Job != was.Job || is.Hooks[0].Phase != rollout.HookRunning {
		t.Fatalf("stable %+v, hooks %+v, held %+v", is.Stable, is.Hooks, is.Held)
	}
	p.ends["migrate"] = rollout.JobState{Complete: true}
	p.tick(1)
	if is = p.state("store"); is.Phase != rollout.Healthy || is.Hooks[0].Phase != rollout.HookSucceeded {
		t.Errorf("it is %s, its hooks are %+v", is.Phase, is.Hooks)
	}
	if p.cluster.objects[extraMap] != nil {
		t.Errorf("%s is left", extraMap)
	}
}

// TestRenamedAppPrunesBeforeTheNextLook renames an app just after a recorded object left Git. In the cluster, the object still belongs to
// the old app name. gitrollout must prune the object, with or without another fetch.
func TestRenamedAppPrunesBeforeTheNextLook(t *testing.T) {
	for _, looks := range []bool{true, false} {
		p := atGates(t)
		p.promoted()
		pass := func(fetch bool) {
			p.touch()
			for ended := p.process.Begin(p.cluster.Kube.Now, fetch); !ended; {
				ended = p.process.Resume(p.outcome(p.process.next))
			}
		}
		p.files("a ConfigMap", map[string]string{shopFile: appFile("shop", "v2") + extraFile})
		p.commit("no ConfigMap", map[string][]byte{shopFile: []byte(appFile("shop", "v2"))})
		pass(true)
		if live := p.cluster.objects[extraMap]; live == nil || live.app != "shop" {
			t.Fatalf("%s of shop is not there any more: %v", extraMap, p.cluster.Objects())
		}
		p.commit("shop is store", p.moved("shop", "store", ""))
		pass(true)
		for range 4 {
			pass(looks)
		}
		if is := p.state("store"); is.Phase != rollout.Healthy || slices.Contains(is.Inventory, extraMap) {
			t.Errorf("it is %s, held %+v, inventory %v", is.Phase, is.Held, is.Inventory)
		}
		if live := p.cluster.objects[extraMap]; live != nil {
			t.Errorf("with looks at Git %t, %s of %s is there, and on no app's record", looks, extraMap, live.app)
		}
	}
}

// TestRestartWithoutAConfiguration reverts a release after a restart of gitrollout, while the configuration is unreadable. The app's
// permissions and folder must come from the recorded commits, where the app may have another name.
func TestRestartWithoutAConfiguration(t *testing.T) {
	for _, tc := range []string{"shop", "store", "shop, at a commit that has a slip"} {
		t.Run(tc, func(t *testing.T) {
			p := atGates(t)
			name, _, hadSlip := strings.Cut(tc, ",")
			if name != "shop" {
				p.rename("shop", name, "")
			}
			if hadSlip {
				config := rollout.ConfigPath("sim")
				good := p.git.Files(p.head())[config]
				p.slip()
				p.files("settings", map[string]string{shopFile: strings.Replace(appFile("shop", "v1"), "setWeight: 50", "setWeight: 20", 1)})
				p.files("no slip", map[string]string{config: good})
			}
			was := p.state(name)
			p.slip()
			p.start()
			p.files("v1 again", map[string]string{"apps/" + name + "/app.yaml": appFile("shop", "v1")})
			p.tick(5)
			p.checkPhase(name, rollout.Healthy)
			p.checkServes("shop", "shop:v1")
			compare.CheckNamed(t, "its objects", was.Inventory, p.state(name).Inventory)
			if n := len(p.cluster.Kube.Deployments); n != 2 {
				t.Errorf("there are %d Deployments of 2 apps", n)
			}
		})
	}
}
