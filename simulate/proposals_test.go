package simulate

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// TestProposalsFollowMain checks an open proposal after different changes of main. If the proposal still merges, it keeps its commit and
// its approvals. A conflicting proposal is renewed, and edits of the proposal's branch are undone. After the merge, the release continues.
func TestProposalsFollowMain(t *testing.T) {
	oldProposal := promotionOf("h1-0123456789", "through: full\n")
	rewritten := map[string]string{"README": "a new beginning\n"}
	evil := map[string][]byte{tillFile: []byte(appFile("till", "evil"))}
	for name, c := range map[string]struct {
		do    func(p *story)
		stays bool
		says  string // the text in the log; "" for none
	}{
		"another app is pushed": {func(p *story) {
			p.files("v3 of till", map[string]string{tillFile: appFile("till", "v3")})
		}, true, ""},
		"a file for another release": {func(p *story) { p.files("an old proposal", oldProposal) }, false, "cannot be merged"},
		"a hold that ends": {func(p *story) {
			p.decision("decision: hold\n")
			p.edit("no hold", map[string][]byte{shopPromotion: nil})
		}, false, "cannot be merged"},
		"a hold that ends and leaves another file": {func(p *story) {
			p.decision("decision: hold\n")
			p.files("no hold", oldProposal)
		}, false, "cannot be merged"},
		"the history is written anew": {func(p *story) { p.rewritten(rewritten) }, false, "rewritten"},
		"the history is written anew while gitrollout is stopped": {func(p *story) {
			p.gitDown = true
			p.rewritten(rewritten)
			p.settle()
			p.gitDown = false
			p.start()
		}, false, "rewritten"},
		"a stranger writes to its branch": {func(p *story) {
			p.git.Commit(memgit.Change{
				Branch: shopProposal, Author: "Mallory", Message: "Promote shop past step 2", When: p.cluster.Kube.Now, Edits: evil,
			})
		}, true, "cannot be merged"},
		"a stranger changes its content": {func(p *story) {
			p.git.Set("Mallory", shopProposal, p.git.Make(p.head(), memgit.Change{Author: "Mallory", When: p.cluster.Kube.Now, Edits: evil}))
		}, true, "differs from the proposal"},
		"nothing, and another process": {func(p *story) { p.start() }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := atGates(t)
			hash, first := p.state("shop").Release.Hash, p.git.Head(shopProposal)
			p.log.Reset()
			c.do(p)
			p.settle()
			now := p.git.Head(shopProposal)
			if (now == first) != c.stays {
				t.Errorf("the proposal was %s and is %s", first, now)
			}
			warned := strings.Contains(p.log.String(), "a proposal is replaced")
			if warned != (c.says != "") || !strings.Contains(p.log.String(), c.says) {
				t.Errorf("the log does not say that it %s:\n%s", c.says, p.log.String())
			}
			if m := p.git.Merge(now, p.head()); !m.Clean || len(m.Edits) != 1 || m.Edits[shopPromotion] == nil {
				t.Errorf("the proposal is clean: %t, and changes %d files", m.Clean, len(m.Edits))
			}
			p.settle()
			if again := p.git.Head(shopProposal); again != now {
				t.Errorf("it was made again: %s after %s", again, now)
			}
			must(t, p.merge([]string{"shop", "promote"}))
			p.settle()
			if got := p.state("shop"); got.Phase != rollout.Healthy || got.Stable.Hash != hash || p.git.Head(shopProposal) != "" {
				t.Errorf("merged, it is %s at %+v; the branch is at %q", got.Phase, got.Stable, p.git.Head(shopProposal))
			}
		})
	}
}
