package simulate

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// by pushes files to main as an author.
func (p *proposing) by(author, message string, files map[string]string) string {
	edits := map[string][]byte{}
	for name, content := range files {
		edits[name] = []byte(content)
	}
	return p.git.Commit(Change{Branch: Branch, Author: author, Message: message, When: p.cluster.Kube.Now, Edits: edits})
}

func only(files map[string]string, path string) map[string]string {
	return map[string]string{path: files[path]}
}

// TestSeveralPushesBetweenLooks pushes several times around a fetch. Each release names the commit that changed its
// app, and each promotion names its author.
func TestSeveralPushesBetweenLooks(t *testing.T) {
	const shop, till = "apps/shop/app.yaml", "apps/till/app.yaml"
	p := newProposing(t)
	hash := p.state("shop").Release.Hash

	p.by("Mia", "promote shop", promotionOf(hash, "through: full\n"))
	p.by("Tom", "unrelated", map[string]string{"README": "hello\n"})
	p.settle()
	p.by("Zoe", "unrelated, too", map[string]string{"README": "hello again\n"})
	p.settle()
	for _, subject := range p.event.Commits {
		t.Log(subject)
	}
	p.tick()
	if got := p.state("shop"); got.Phase != rollout.Healthy {
		t.Fatalf("it is %s", got.Phase)
	}
	if got := p.opened("shop"); got != "Mia" {
		t.Errorf("%q promoted shop, want Mia", got)
	}

	first := p.by("Ann", "v3 of shop", only(twoApps("v3"), shop))
	second := p.by("Bob", "v3 of till", only(twoApps("v3"), till))
	p.by("Eve", "unrelated", map[string]string{"README": "bye\n"})
	p.settle()
	for app, want := range map[string]struct{ commit, author, subject string }{
		"shop": {first, "Ann", "v3 of shop"}, "till": {second, "Bob", "v3 of till"},
	} {
		got := p.state(app).Release
		if got == nil || got.Commit != want.commit || got.Author != want.author || got.Subject != want.subject {
			t.Errorf("the release of %s is %+v, want %+v", app, got, want)
		}
	}

	// Back and forth: the last commit that changed the content counts.
	p.by("Ann", "v4 of shop", only(twoApps("v4"), shop))
	p.by("Ann", "v3 again", only(twoApps("v3"), shop))
	last := p.by("Ann", "v4 again", only(twoApps("v4"), shop))
	p.by("Bob", "unrelated", map[string]string{"README": "once more\n"})
	p.settle()
	if got := p.state("shop").Release; got == nil || got.Commit != last {
		t.Errorf("the release is %+v, want the release of %s", got, last)
	}
}

// opened returns the recorded author of an app's last promotion.
func (p *proposing) opened(app string) string {
	for at := p.git.Head("gitrollout/state/sim"); at != ""; at = p.git.Parent(at) {
		s, err := rollout.ParseState("x", []byte(p.git.Files(at)[rollout.StatePath(app)]))
		if err != nil {
			return err.Error()
		}
		for _, pr := range s.Progress {
			if pr.Opened != "" {
				return pr.Opened
			}
		}
	}
	return ""
}
