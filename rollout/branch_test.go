package rollout_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

func TestBranches(t *testing.T) {
	at := time.Date(2026, 11, 20, 13, 0, 0, 0, time.FixedZone("", 3600))
	promotion := rollout.ProposalBranch(rollout.ProposePromotion, "prod-eu", "shop")
	revert := rollout.ProposalBranch(rollout.ProposeRevert, "prod-eu", "shop")
	for branch, c := range map[string]struct {
		want     string
		proposal bool
	}{
		promotion:                            {"gitrollout/promote/prod-eu/shop", true},
		revert:                               {"gitrollout/revert/prod-eu/shop", true},
		rollout.StateBranch("prod-eu"):       {"gitrollout/state/prod-eu", false},
		rollout.NotifiedBranch("prod-eu"):    {"gitrollout/notified/prod-eu", false},
		rollout.ArchiveBranch("prod-eu", at): {"gitrollout/archive/prod-eu/2026-11-20T120000Z", false},
		"gitrollout/promote":                 {"gitrollout/promote", false},
		"gitrollout/promoted/prod-eu/shop":   {"gitrollout/promoted/prod-eu/shop", false},
		"topic/gitrollout/promote/x":         {"topic/gitrollout/promote/x", false},
		"promote/prod-eu/shop":               {"promote/prod-eu/shop", false},
		"main":                               {"main", false},
	} {
		if branch != c.want || rollout.IsProposal(branch) != c.proposal {
			t.Errorf("%s, want %s; a proposal: %t, want %t", branch, c.want, rollout.IsProposal(branch), c.proposal)
		}
	}
	prefixes := rollout.ProposalBranches("prod-eu", "")
	if len(prefixes) != 2 || !strings.HasPrefix(promotion, prefixes[0]) || !strings.HasPrefix(revert, prefixes[1]) {
		t.Errorf("proposals begin with %q", prefixes)
	}
	if other := rollout.ProposalBranch(rollout.ProposeRevert, "prod-eu-2", "shop"); strings.HasPrefix(other, prefixes[1]) {
		t.Errorf("%s is taken for a branch of prod-eu", other)
	}
}
