package simulate

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// proposing is a story of two apps at their gates, each with its proposal.
type proposing struct {
	*Story
	t      *testing.T
	log    bytes.Buffer
	branch string // of shop's proposal
}

func newProposing(t *testing.T) *proposing {
	p := &proposing{t: t, branch: "gitrollout/promote/sim/shop"}
	var err error
	p.Story, err = NewStory(StoryOptions{
		Cluster: "sim", Files: twoApps("v1"),
		Options: reconciler.Options{Renderer: render.New(render.InProcess{}), Log: slog.New(slog.NewTextHandler(&p.log, nil))},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.start()
	p.settle()
	p.files("v2 of both", twoApps("v2"))
	if got := p.state("shop"); got.Phase != rollout.Paused || p.git.Head(p.branch) == "" {
		t.Fatalf("it is %s, and its proposal is at %q", got.Phase, p.git.Head(p.branch))
	}
	return p
}

func (p *proposing) settle() {
	p.t.Helper()
	for range 3 { // one fetch may bring the cause for the next one
		p.event = &Event{}
		p.touch()
		if err := p.rest(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// files pushes files to main; nil content deletes a file.
func (p *proposing) files(message string, files map[string]string) {
	p.t.Helper()
	edits := map[string][]byte{}
	for name, content := range files {
		edits[name] = []byte(content)
	}
	p.commit(message, edits)
	p.settle()
}

const shopPromotion = ".gitrollout/sim/promote/shop.yaml"

func promotionOf(release rollout.Hash, rest string) map[string]string {
	return map[string]string{
		shopPromotion: "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: " + string(release) + "\n" + rest,
	}
}

// TestProposalsFollowMain changes main in several ways while a proposal waits. A proposal that still merges stays,
// together with its approvals. A conflicting proposal is renewed, and edits of its branch are undone. Its merge
// continues the release.
func TestProposalsFollowMain(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(p *proposing, hash rollout.Hash)
		stays bool
		says  string // in the log; "" for nothing
	}{
		"another app is pushed": {func(p *proposing, _ rollout.Hash) {
			p.files("v3 of till", map[string]string{"apps/till/app.yaml": twoApps("v3")["apps/till/app.yaml"]})
		}, true, ""},
		"a file for another release": {func(p *proposing, _ rollout.Hash) {
			p.files("an old proposal", promotionOf("h1-0123456789", "through: full\n"))
		}, false, "cannot be merged"},
		"a hold that ends": {func(p *proposing, hash rollout.Hash) {
			p.files("hold", promotionOf(hash, "decision: hold\n"))
			p.commit("no hold", map[string][]byte{shopPromotion: nil})
			p.settle()
		}, false, "cannot be merged"},
		"a hold that ends and leaves another file": {func(p *proposing, hash rollout.Hash) {
			p.files("hold", promotionOf(hash, "decision: hold\n"))
			p.files("no hold", promotionOf("h1-0123456789", "through: full\n"))
		}, false, "cannot be merged"},
		"the history is written anew": {func(p *proposing, _ rollout.Hash) {
			p.rewritten()
		}, false, "rewritten"},
		"the history is written anew while gitrollout is stopped": {func(p *proposing, _ rollout.Hash) {
			p.gitDown = true
			p.rewritten()
			p.gitDown = false
			p.start()
			p.settle()
		}, false, "rewritten"},
		"a stranger writes to its branch": {func(p *proposing, _ rollout.Hash) {
			evil := twoApps("evil")["apps/till/app.yaml"]
			p.git.Commit(Change{
				Branch: p.branch, Author: "Mallory", Message: "Promote shop past step 2", When: p.cluster.Kube.Now,
				Edits: map[string][]byte{"apps/till/app.yaml": []byte(evil)},
			})
			p.settle()
		}, true, "cannot be merged"},
		"a stranger changes its content": {func(p *proposing, _ rollout.Hash) {
			evil := twoApps("evil")["apps/till/app.yaml"]
			made := p.git.make(p.head(), map[string][]byte{"apps/till/app.yaml": []byte(evil)}, "Mallory", "x", p.cluster.Kube.Now)
			p.git.add(made)
			p.git.Set("Mallory", p.branch, made.ID)
			p.settle()
		}, true, "differs from the proposal"},
		"nothing, and another process": {func(p *proposing, _ rollout.Hash) { p.start(); p.settle() }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(t)
			hash, first := p.state("shop").Release.Hash, p.git.Head(p.branch)
			p.log.Reset()
			c.do(p, hash)
			now := p.git.Head(p.branch)
			if (now == first) != c.stays {
				t.Errorf("the proposal was %s and is %s", first, now)
			}
			warned := strings.Contains(p.log.String(), "made anew")
			if warned != (c.says != "") || !strings.Contains(p.log.String(), c.says) {
				t.Errorf("the log does not say that it %s:\n%s", c.says, p.log.String())
			}
			if m := p.git.Merge(now, p.head()); !m.Clean || len(m.Edits) != 1 || m.Edits[shopPromotion] == nil {
				t.Errorf("the proposal is clean: %t, and changes %d files", m.Clean, len(m.Edits))
			}
			p.settle()
			if again := p.git.Head(p.branch); again != now {
				t.Errorf("it was made again: %s after %s", again, now)
			}
			if err := p.merge([]string{"shop", "promote"}); err != nil {
				t.Fatal(err)
			}
			p.settle()
			if got := p.state("shop"); got.Phase != rollout.Healthy || got.Stable.Hash != hash || p.git.Head(p.branch) != "" {
				t.Errorf("merged, it is %s at %+v; the branch is at %q", got.Phase, got.Stable, p.git.Head(p.branch))
			}
		})
	}
}

// rewritten commits main's files without a parent.
func (p *proposing) rewritten() {
	files := map[string][]byte{"README": []byte("a new beginning\n")}
	for name, content := range p.git.Files(p.head()) {
		files[name] = []byte(content)
	}
	made := p.git.make("", files, "Ann", "a new beginning", p.cluster.Kube.Now)
	p.git.add(made)
	p.git.Set("Ann", Branch, made.ID)
	p.settle()
}
