package forge

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/giteatest"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// giteaBench is a repository on a real Gitea server.
type giteaBench struct {
	t          *testing.T
	server     *giteatest.Server
	owner, bot giteatest.Account
	repo, dir  string
}

// newGiteaMaker starts a server, and returns a function that makes a repository for each test case. The worker's
// account has only the rights and scopes that docs/forges.md requires.
func newGiteaMaker(t *testing.T) maker {
	s := giteatest.Start(t)
	owner, bot, ann := s.User("acme"), s.User("bot", "write:repository", "write:issue"), s.User("ann")
	repositories := 0
	return func(t *testing.T) (bench, Options, rollout.Forge) {
		repositories++
		g := &giteaBench{t: t, server: s, owner: owner, bot: bot, dir: t.TempDir()}
		g.repo = s.Repository(owner, fmt.Sprint("deploy", repositories), bot, ann)
		return g.begin()
	}
}

// begin pushes a first commit to the repository.
func (g *giteaBench) begin() (bench, Options, rollout.Forge) {
	s := g.server
	g.git("init", "-q", "-b", "main")
	g.git("remote", "add", "origin", s.CloneURL(g.owner, g.repo))
	g.commit("main")
	g.git("push", "-q", "origin", "main")
	g.await("main")
	return g, Options{
		Remote: s.URL + "/" + g.repo + ".git", Token: tokenOf(g.bot.Token),
	}, rollout.Forge{Type: rollout.Gitea}
}

func (g *giteaBench) git(args ...string) string {
	g.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = g.dir, gittest.Env()
	out, err := c.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g *giteaBench) commit(content string) string {
	g.t.Helper()
	must(g.t, os.WriteFile(filepath.Join(g.dir, "file"), []byte(base64.StdEncoding.EncodeToString([]byte(content))), 0o600))
	g.git("add", ".")
	g.git("commit", "-q", "--allow-empty", "-m", content)
	return g.git("rev-parse", "HEAD")
}

// await waits until Gitea's API lists a branch, because Gitea handles pushes in the background.
func (g *giteaBench) await(branch string) {
	g.t.Helper()
	giteatest.Eventually(g.t, branch+" is listed", func() bool {
		status, _ := g.server.API(g.owner, http.MethodGet, "/repos/"+g.repo+"/branches/"+url.PathEscape(branch), nil, nil)
		return status == http.StatusOK
	})
}

func (g *giteaBench) push(branch, content string) string {
	g.t.Helper()
	g.git("checkout", "-q", "-B", "work", "main")
	id := g.commit(content)
	g.git("push", "-q", "--force", "origin", "work:refs/heads/"+branch)
	return id
}

func (g *giteaBench) drop(branch string) {
	g.t.Helper()
	g.git("push", "-q", "origin", ":refs/heads/"+branch)
	giteatest.Eventually(g.t, branch+" is gone", func() bool {
		status, _ := g.server.API(g.owner, http.MethodGet, "/repos/"+g.repo+"/branches/"+url.PathEscape(branch), nil, nil)
		return status == http.StatusNotFound
	})
}

func (g *giteaBench) merge(number int) {
	g.t.Helper()
	giteatest.Eventually(g.t, "it can be merged", func() bool {
		status, _ := g.server.API(g.owner, http.MethodPost, fmt.Sprintf("/repos/%s/pulls/%d/merge", g.repo, number),
			map[string]any{"Do": "merge"}, nil)
		return status == http.StatusOK
	})
}

func (g *giteaBench) close(number int) {
	g.t.Helper()
	g.server.Must(g.owner, http.MethodPatch, fmt.Sprintf("/repos/%s/pulls/%d", g.repo, number), map[string]any{"state": "closed"}, nil)
}

func (g *giteaBench) propose(branch, title string) int {
	g.t.Helper()
	g.await(branch)
	var made struct{ Number int }
	g.server.Must(g.owner, http.MethodPost, "/repos/"+g.repo+"/pulls", map[string]any{"title": title, "head": branch, "base": "main"}, &made)
	return made.Number
}

func (g *giteaBench) list() []seen {
	g.t.Helper()
	var pulls []struct {
		repositoryPull
		Reviewers []struct{ Login string } `json:"requested_reviewers"`
	}
	g.server.Must(g.owner, http.MethodGet, "/repos/"+g.repo+"/pulls?state=all", nil, &pulls)
	var all []seen
	for _, p := range pulls {
		s := seen{number: p.Number, title: p.Title, body: p.Body, branch: p.Head.Label, state: p.State}
		if p.Merged {
			s.state = "merged"
		}
		for _, l := range p.Labels {
			s.labels = append(s.labels, l.Name)
		}
		for _, r := range p.Reviewers {
			s.reviewers = append(s.reviewers, r.Login)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b seen) int { return a.number - b.number })
	return all
}

func (g *giteaBench) marks(commit string) []fakeStatus {
	g.t.Helper()
	type listedStatus struct{ Context, Status, Description string }
	var listed []listedStatus
	g.server.Must(g.owner, http.MethodGet, "/repos/"+g.repo+"/commits/"+commit+"/statuses?sort=oldest", nil, &listed)
	return rollout.Mapped(listed, func(s listedStatus) fakeStatus { return fakeStatus{s.Context, s.Status, s.Description} })
}
