package simulate

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// withoutShop deletes shop's folder, and writes other files in the same commit.
func (p *proposing) withoutShop(files map[string]string) {
	p.t.Helper()
	edits := map[string][]byte{}
	for name := range p.git.Files(p.head()) {
		if strings.HasPrefix(name, "apps/shop/") {
			edits[name] = nil
		}
	}
	for name, content := range files {
		edits[name] = []byte(content)
	}
	p.commit("shop leaves", edits)
	p.settle()
}

// TestProposalsLeaveWithTheirApp checks that a proposal is closed when Git no longer has its app.
func TestProposalsLeaveWithTheirApp(t *testing.T) {
	p := newProposing(t)
	p.files("abort", promotionOf(p.state("shop").Release.Hash, "decision: abort\n"))
	p.tick()
	const revert = "gitrollout/revert/sim/shop"
	if got := p.state("shop"); got.Phase != rollout.Degraded || p.git.Head(revert) == "" {
		t.Fatalf("it is %s, and its revert is proposed at %q", got.Phase, p.git.Head(revert))
	}
	p.withoutShop(nil)
	if got := p.state("shop"); got.Held == nil || p.git.Head(revert) != "" || p.git.Head(p.branch) != "" {
		t.Errorf("held: %+v; proposals are at %q and %q", got.Held, p.git.Head(revert), p.git.Head(p.branch))
	}
}

// TestAppThatLeftTakesNothingBack checks that an app removed from Git rolls back to stable, without objects that
// another app has by now.
func TestAppThatLeftTakesNothingBack(t *testing.T) {
	p := newProposing(t)
	deployment, _, _ := strings.Cut(twoApps("v3")["apps/shop/app.yaml"], "---\n")
	p.cluster.writing = func(_ *View, app string, o rollout.Object) {
		if o.Kind() == "Deployment" && o.Name() == "shop" && app != "till" {
			t.Errorf("%s writes the Deployment that till has", app)
		}
	}
	p.withoutShop(map[string]string{
		shopPromotion:                  promotionOf(p.state("shop").Release.Hash, "decision: abort\n")[shopPromotion],
		"apps/till/shop.yaml":          deployment,
		"apps/till/kustomization.yaml": "resources: [app.yaml, shop.yaml]\n",
	})
	p.tick()
	if got := p.serving("shop"); got != "shop:v3" {
		t.Errorf("%s serves, want what its new app has", got)
	}
}

// TestAppThatLeftStaysAlone restarts the process at a commit whose configuration cannot be read. An app that left Git
// before is still left alone, although the configuration of its own commit lists it.
func TestAppThatLeftStaysAlone(t *testing.T) {
	p := newProposing(t)
	deployment, _, _ := strings.Cut(twoApps("v3")["apps/shop/app.yaml"], "---\n")
	p.withoutShop(map[string]string{
		"apps/till/shop.yaml":          deployment,
		"apps/till/kustomization.yaml": "resources: [app.yaml, shop.yaml]\n",
	})
	held := p.state("shop").Held
	if held == nil || p.serving("shop") != "shop:v3" {
		t.Fatalf("shop is held %+v, and %s serves", held, p.serving("shop"))
	}
	p.cluster.writing = func(_ *View, app string, o rollout.Object) {
		t.Errorf("%s writes %s", app, name(o))
	}
	p.files("a slip", map[string]string{rollout.ConfigPath("sim"): "apps: ["})
	p.settle()
	p.start()
	for range 5 {
		p.tick()
	}
	if now := p.state("shop").Held; now == nil || *now != *held {
		t.Errorf("shop is held %+v, was %+v", now, held)
	}
}

// TestAbortWithoutConfiguration aborts a release that waits for a freeze, at a commit whose configuration cannot be
// read.
func TestAbortWithoutConfiguration(t *testing.T) {
	p := newProposing(t)
	if err := p.decide(rollout.Promote, []string{"till", rollout.Full}); err != nil {
		t.Fatal(err)
	}
	p.tick()
	p.files("a freeze", map[string]string{rollout.FreezePath("sim"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\n"})
	p.files("v3 of till", map[string]string{"apps/till/app.yaml": twoApps("v3")["apps/till/app.yaml"]})
	if held := p.state("till").Held; held == nil || held.Reason != rollout.HeldClosed {
		t.Fatalf("till is %s, held %+v", p.state("till").Phase, held)
	}
	p.files("a slip", map[string]string{rollout.ConfigPath("sim"): "apps: ["})
	if err := p.decide(rollout.Abort, []string{"till"}); err != nil {
		t.Fatal(err)
	}
	p.tick()
	if got := p.state("till"); len(got.Rejected) != 1 {
		t.Errorf("till is %s, held %+v, and rejects %+v", got.Phase, got.Held, got.Rejected)
	}
}
