package reconciler

import (
	"fmt"
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestIdleLookIsFree checks that a look at an unchanged repository allocates nothing for each app.
func TestIdleLookIsFree(t *testing.T) {
	allocations := func(apps int) float64 {
		files := map[string]string{configFile: plainConfig, "apps/shop/kustomization.yaml": "resources: [app.yaml]\n",
			"apps/shop/app.yaml": version("v1")}
		for i := range apps {
			files[fmt.Sprintf("apps/app%d/kustomization.yaml", i)] = fmt.Sprintf(
				"configMapGenerator:\n- name: app%d\n  literals: [colour=blue]\n", i)
		}
		w := worldOf(t, files, nil)
		return testing.AllocsPerRun(10, func() { must(t, w.r.in.look(t.Context())) })
	}
	if one, many := allocations(1), allocations(31); many-one >= 15 {
		t.Errorf("%v allocations with 31 apps, %v with one app", many, one)
	}
}

// TestUnchangedAppIsRenderedOnce checks that a new head that does not change an app costs one render of the app. The
// commits before the head are rendered only if the app has changed.
func TestUnchangedAppIsRenderedOnce(t *testing.T) {
	s, r := newShelf()
	s.same = map[string]string{"second": "first"}
	shop := app("shop")
	r.renders.look(readable("first"), nil, []rollout.App{shop})
	r.renders.drain()
	for _, v := range []*gitView{at("first", "second"), at("second", "third")} {
		r.renders.look(v.branch.Tree, v.line, []rollout.App{shop})
		r.renders.drain()
	}
	compare.Check(t, []string{"shop first", "shop second", "shop third", "shop second"}, s.rendered)
	wantHead(t, r, at("third"), "shop", "third")
}

// TestOwnersOfProposals checks that a proposal's branch leads to its app, if the app is on record.
func TestOwnersOfProposals(t *testing.T) {
	_, r := newShelf()
	r.states.Cluster = "prod"
	r.states.apps = map[string]appState{"shop": {}, "till": {}}
	r.states.proposals = map[string]string{
		rollout.ProposalBranch(rollout.ProposePromotion, "prod", "shop"): "1",
		rollout.ProposalBranch(rollout.ProposePromotion, "prod", "gone"): "2",
		rollout.ProposalBranch(rollout.ProposeRevert, "prod", "till"):    "3",
		rollout.ProposalBranch(rollout.ProposeRevert, "test", "shop"):    "4",
	}
	compare.Check(t, []string{"shop", "till"}, slices.Sorted(slices.Values(r.states.proposers())))
}
