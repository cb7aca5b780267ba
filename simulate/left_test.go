package simulate

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// withoutShop deletes the folder of app "shop", and writes other files in the same commit.
func (p *story) withoutShop(files map[string]string) {
	p.t.Helper()
	all := edits(files)
	for name := range p.git.Files(p.head()) {
		if strings.HasPrefix(name, "apps/shop/") {
			all[name] = nil
		}
	}
	p.edit("shop leaves", all)
}

// inTill returns files that add the Deployment "shop" to app "till".
func inTill() map[string]string {
	deployment, _, _ := strings.Cut(appFile("shop", "v3"), "---\n")
	return map[string]string{"apps/till/shop.yaml": deployment, "apps/till/kustomization.yaml": "resources: [app.yaml, shop.yaml]\n"}
}

// TestProposalsLeaveWithTheirApp checks that gitrollout deletes an app's proposals when the app is removed from Git.
func TestProposalsLeaveWithTheirApp(t *testing.T) {
	p := atGates(t)
	p.decision("decision: abort\n")
	p.tick(1)
	const revert = "gitrollout/revert/sim/shop"
	if got := p.state("shop"); got.Phase != rollout.Degraded || p.git.Head(revert) == "" {
		t.Fatalf("it is %s, and its revert is proposed at %q", got.Phase, p.git.Head(revert))
	}
	p.withoutShop(nil)
	if got := p.state("shop"); got.Held == nil || p.git.Head(revert) != "" || p.git.Head(shopProposal) != "" {
		t.Errorf("held: %+v; proposals are at %q and %q", got.Held, p.git.Head(revert), p.git.Head(shopProposal))
	}
}

// TestAppThatLeftTakesNothingBack removes an app from Git and aborts its release. The rollback must not write objects
// that now belong to another app.
func TestAppThatLeftTakesNothingBack(t *testing.T) {
	p := atGates(t)
	p.cluster.writing = func(_ *View, app string, o rollout.Object) {
		if o.Kind() == "Deployment" && o.Name() == "shop" && app != "till" {
			t.Errorf("%s writes the Deployment that till has", app)
		}
	}
	files := inTill()
	files[shopPromotion] = promotionOf(p.state("shop").Release.Hash, "decision: abort\n")[shopPromotion]
	p.withoutShop(files)
	p.tick(1)
	p.checkServes("shop", "shop:v3") // the Deployment, with this image, belongs to app "till" now
}

// TestAppThatLeftStaysAlone checks that a restarted process writes no object of an app that left Git. The configuration at main's head is
// unreadable, and the configuration at the app's recorded commit still lists the app.
func TestAppThatLeftStaysAlone(t *testing.T) {
	p := atGates(t)
	p.withoutShop(inTill())
	held := p.state("shop").Held
	if held == nil || p.serving("shop") != "shop:v3" {
		t.Fatalf("shop is held %+v, and %s serves", held, p.serving("shop"))
	}
	p.cluster.writing = func(_ *View, app string, o rollout.Object) {
		t.Errorf("%s writes %s", app, name(o))
	}
	p.slip()
	p.start()
	p.tick(5)
	if now := p.state("shop").Held; now == nil || *now != *held {
		t.Errorf("shop is held %+v, was %+v", now, held)
	}
}

// TestAbortWithoutConfiguration aborts a release that waits for the end of a freeze. The abort must end the release, although the
// configuration at main's head is unreadable.
func TestAbortWithoutConfiguration(t *testing.T) {
	p := atGates(t)
	must(t, p.decide(rollout.Promote, []string{"till", rollout.Full}))
	p.tick(1)
	p.files("a freeze", map[string]string{rollout.FreezePath("sim"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\n"})
	p.files("v3 of till", map[string]string{tillFile: appFile("till", "v3")})
	if held := p.state("till").Held; held == nil || held.Reason != rollout.HeldClosed {
		t.Fatalf("till is %s, held %+v", p.state("till").Phase, held)
	}
	p.slip()
	must(t, p.decide(rollout.Abort, []string{"till"}))
	p.tick(1)
	if got := p.state("till"); len(got.Rejected) != 1 {
		t.Errorf("till is %s, held %+v, and rejects %+v", got.Phase, got.Held, got.Rejected)
	}
}

// TestStableThatLeftTheBranch rewrites main to a history with a third version and without the stable commit. A restarted process accepts
// only commits of main, so the rollback waits and changes no pod. A full promotion ends the wait.
func TestStableThatLeftTheBranch(t *testing.T) {
	p := atGates(t)
	p.rewritten(map[string]string{shopFile: appFile("shop", "v3")})
	pods := p.pods()
	p.start()
	p.tick(5)
	if s, now := p.state("shop"), p.pods(); s.Phase != rollout.Aborting || now != pods {
		t.Fatalf("it is %s, pods were %s and are %s", s.Phase, pods, now)
	}
	must(t, p.decide(rollout.Promote, []string{"shop", rollout.Full}))
	p.tick(1)
	p.checkPhase("shop", rollout.Healthy)
	p.checkServes("shop", "shop:v3")
}
