package simulate

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// TestARetreatOvertakesAPush supersedes a release while the record of the release's promotion is being pushed. The superseded release is
// rolled back before the push ends. After the push, no user may reach pods that the rollback removes.
func TestARetreatOvertakesAPush(t *testing.T) {
	files := func(version string) map[string]string {
		all := twoApps(version)
		all[shopFile] = strings.Replace(all[shopFile], "canary: {steps: [{setWeight: 50}, {pause: {}}]}",
			"blueGreen: {activeService: shop, autoPromotionEnabled: false}", 1) +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {selector: {app: shop}, ports: [{port: 80}]}\n"
		return all
	}
	p := newStory(t, files("v1"))
	p.start()
	p.settle()
	p.files("v2", files("v2"))
	serves := func() string {
		pin := p.cluster.Kube.Pins[rollout.Ref{Kind: "Service", Namespace: "default", Name: "shop"}]
		for _, d := range p.cluster.Kube.Deployments {
			for _, set := range d.Sets {
				if set.PodHash == pin {
					return set.Template[strings.Index(set.Template, "shop:v"):][:7]
				}
			}
		}
		return pin
	}
	turn := func(pump reconciler.Pump) {
		p.cluster.Kube.Now = p.cluster.Kube.Now.Add(time.Second)
		p.touch()
		for ended := p.process.BeginTurn(pump, p.cluster.Kube.Now); !ended; {
			p.process.Choose(len(p.process.threads) - 1) // continue the new thread, while the push stays blocked
			ended = p.process.Resume(Outcome{})
		}
	}
	look := func() {
		for range 3 { // the reconciler needs one turn to render an app, and one turn to reconcile the app
			turn(reconciler.PumpIn)
			turn(reconciler.PumpApps)
		}
	}
	p.by("Mia", "promote shop", promotionOf(p.state("shop").Release.Hash, "through: full\n"))
	look()
	if ended := p.process.BeginTurn(reconciler.PumpOut, p.cluster.Kube.Now); ended || p.process.next.Verb != "push" {
		t.Fatalf("nothing is being pushed: %s", p.process.next)
	}
	p.by("Ann", "v3", map[string]string{shopFile: files("v3")[shopFile]})
	look()
	if got := p.serving("shop"); got != "shop:v1" {
		t.Fatalf("superseded while a switch is being pushed, the Deployment is at %s", got)
	}
	for len(p.process.threads) > 0 {
		p.process.Resume(Outcome{})
	}
	for range 5 {
		turn(reconciler.PumpApps)
		if got := serves(); got == "shop:v2" {
			t.Errorf("users are sent to pods of v2, which are going; on record it is %s", p.state("shop").Phase)
		}
		turn(reconciler.PumpOut)
		turn(reconciler.PumpIn)
	}
	if got := p.state("shop"); got.Stable == nil || got.Phase == rollout.Healthy || p.serving("shop") == "shop:v2" {
		t.Errorf("in the end it is %s with %s", got.Phase, p.serving("shop"))
	}
}
