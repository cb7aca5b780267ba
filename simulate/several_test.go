package simulate

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

func (p *story) by(author, message string, files map[string]string) string {
	return p.git.Commit(memgit.Change{Branch: Branch, Author: author, Message: message, When: p.cluster.Kube.Now, Edits: edits(files)})
}

// TestSeveralPushesBetweenLooks pushes several times between two fetches. The record of each release must name the
// commit that changed the app, and the record of each promotion must name the promotion's author.
func TestSeveralPushesBetweenLooks(t *testing.T) {
	p := atGates(t)
	unrelated := func(author, text string) {
		p.by(author, "unrelated", map[string]string{"README": text + "\n"})
		p.settle()
	}
	version := func(author, app, version string) string {
		return p.by(author, version+" of "+app, map[string]string{"apps/" + app + "/app.yaml": appFile(app, version)})
	}

	p.by("Mia", "promote shop", promotionOf(p.state("shop").Release.Hash, "through: full\n"))
	unrelated("Tom", "hello")
	unrelated("Zoe", "hello again")
	p.tick(1)
	p.checkPhase("shop", rollout.Healthy)
	if got := p.opened("shop"); got != "Mia" {
		t.Errorf("%q promoted shop, want Mia", got)
	}

	first, second := version("Ann", "shop", "v3"), version("Bob", "till", "v3")
	unrelated("Eve", "bye")
	for app, want := range map[string]struct{ commit, author, subject string }{
		"shop": {first, "Ann", "v3 of shop"}, "till": {second, "Bob", "v3 of till"},
	} {
		got := p.state(app).Release
		if got == nil || got.Commit != want.commit || got.Author != want.author || got.Subject != want.subject {
			t.Errorf("the release of %s is %+v, want %+v", app, got, want)
		}
	}

	// v4 is pushed, replaced and pushed again. The release must name the last commit.
	version("Ann", "shop", "v4")
	version("Ann", "shop", "v3")
	last := version("Ann", "shop", "v4")
	unrelated("Bob", "once more")
	if got := p.state("shop").Release; got == nil || got.Commit != last {
		t.Errorf("the release is %+v, want the release of %s", got, last)
	}
}

// opened returns the author of an app's last promotion, as recorded on the state branch.
func (p *story) opened(app string) string {
	for at := p.git.Head(stateBranch); at != ""; at = p.git.Commits[at].Parent {
		s, err := rollout.ParseState("x", []byte(p.git.Files(at)[rollout.StatePath(app)]))
		must(p.t, err)
		for _, pr := range s.Progress {
			if pr.Opened != "" {
				return pr.Opened
			}
		}
	}
	return ""
}
