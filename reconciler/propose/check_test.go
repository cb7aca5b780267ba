package propose_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

func TestRestores(t *testing.T) {
	head := commit{
		"apps/shop/a.yaml": "2", "apps/shop/new.yaml": "n", "apps/shop/web.yaml": "replicas: 9", "base/x.yaml": "2", "README": "2",
		"apps/shop/none.yaml": "x",
	}
	old := commit{"apps/shop/a.yaml": "1", "apps/shop/web.yaml": "replicas: 3", "base/x.yaml": "1", "README": "1", "apps/shop/none.yaml": ""}
	files := []string{"apps/shop/a.yaml", "apps/shop/new.yaml", "apps/shop/web.yaml", "base/x.yaml", "apps/shop/none.yaml"}
	for name, c := range map[string]struct {
		edits map[string][]byte
		clean bool
		want  bool
	}{
		"as they were":            {map[string][]byte{"apps/shop/a.yaml": []byte("1"), "apps/shop/new.yaml": nil}, true, true},
		"in conflict":             {map[string][]byte{"apps/shop/a.yaml": []byte("1")}, false, false},
		"another content":         {map[string][]byte{"apps/shop/a.yaml": []byte("evil")}, true, false},
		"a file that was not":     {map[string][]byte{"apps/shop/new.yaml": []byte("evil")}, true, false},
		"a file is gone that was": {map[string][]byte{"base/x.yaml": nil}, true, false},
		"fewer pods":              {map[string][]byte{"apps/shop/web.yaml": []byte("replicas: 3")}, true, false},
		"a file that was empty":   {map[string][]byte{"apps/shop/none.yaml": nil}, true, false},
		"another app's file":      {map[string][]byte{"README": []byte("1")}, true, false},
	} {
		merge, from, to := rollout.Merge{Edits: c.edits, Clean: c.clean}, sizedTo("apps/shop", files, 9), sizedTo("apps/shop", files, 3)
		compare.CheckNamed(t, name, c.want, propose.Restores(merge, head, old, from, to))
	}
}

// TestMergeable checks that no proposal is mergeable while the app waits at no gate.
func TestMergeable(t *testing.T) {
	in := strategies.Input{State: rollout.State{App: "shop", Phase: rollout.Healthy}}
	compare.CheckNamed(t, "a proposal without a gate is to be merged", false, propose.Mergeable("prod", in, rollout.Merge{Clean: true}))
}

// TestMergeableApproval checks which branch and which merges approve the entry of an app.
func TestMergeableApproval(t *testing.T) {
	const own, joint = "gitrollout/promote/prod/shop", "gitrollout/promote/prod/@c9c9c9c9c9c9"
	in := shop()
	commit := rollout.Commit{ID: "c9c9c9c9c9c9c9c9", Author: "Ann"}
	in.Stage = &rollout.Stage{Name: "prod"}
	in.Entry = &cohort.Entry{Held: rollout.HeldStage, Release: "h1-9", Commit: commit, Versions: map[string]rollout.Hash{"prod": "h1-9"},
		Hold: "an approval for stage prod: gitrollout promote shop --through entry"}
	in.State = in.State.AtRest(rollout.Healthy, "")
	in.State.Held = &rollout.Held{Reason: rollout.HeldStage, Commit: commit.ID, Message: in.Entry.Message()}
	branch := func(proposals ...string) string {
		all := map[string]string{}
		for _, p := range proposals {
			all[p] = "c1"
		}
		return propose.BranchOf(rollout.ProposePromotion, "prod", in, all)
	}
	compare.CheckNamed(t, "branches", []string{own, own, joint}, []string{branch(own), branch(own, joint), branch(joint)})
	edits := propose.Entry("prod", in).Edits
	compare.CheckNamed(t, "the entry", true, propose.Mergeable("prod", in, rollout.Merge{Clean: true, Edits: edits}))
	edits["other"] = nil
	compare.CheckNamed(t, "together with others", true, propose.Mergeable("prod", in, rollout.Merge{Clean: true, Edits: edits}))
	compare.CheckNamed(t, "in conflict", false, propose.Mergeable("prod", in, rollout.Merge{Edits: edits}))
	edits[rollout.PromotionPath("prod", "shop")] = []byte("evil")
	compare.CheckNamed(t, "another content", false, propose.Mergeable("prod", in, rollout.Merge{Clean: true, Edits: edits}))
	in.Promotion = &rollout.Promotion{Release: "h1-9", Through: rollout.ThroughEntry, Commit: commit.ID}
	compare.CheckNamed(t, "after the merge", own, branch(joint))
	const named = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: a, name: '@c9'}\n"
	if _, err := rollout.ParseConfig("c", []byte(named)); err == nil {
		t.Error("an app's name may begin with @")
	}
}
