package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// gitea is the API of Gitea and of Forgejo, version 1.
type gitea struct {
	*caller
	repo string // /repos/owner/name
	base string
}

func newGitea(c *caller, repository, base string) host {
	c.authorize = func(h http.Header, token string) { h.Set("Authorization", "token "+token) }
	return &gitea{caller: c, repo: "/repos/" + repository, base: base}
}

type giteaPull struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"`
	Merged bool   `json:"merged"`
	Head   struct {
		Label  string `json:"label"` // the branch; ref is another name once it is gone
		SHA    string `json:"sha"`
		RepoID int64  `json:"repo_id"`
	} `json:"head"`
	Base struct {
		RepoID int64 `json:"repo_id"`
	} `json:"base"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

func (p giteaPull) pull() pull {
	q := pull{number: p.Number, text: text{p.Title, p.Body}, branch: p.Head.Label, commit: p.Head.SHA, isOpen: p.State == "open", merged: p.Merged}
	for _, l := range p.Labels {
		q.labels = append(q.labels, l.Name)
	}
	return q
}

// find is host's. Gitea cannot filter by head: the open ones are read, and of
// the closed ones those that changed last.
func (g *gitea) find(ctx context.Context, branch string) (pull, bool, error) {
	for _, list := range []struct {
		query string
		pages int
	}{{"state=open", maxPages}, {"state=closed&sort=recentupdate", 2}} {
		pulls, err := g.list(ctx, list.query, list.pages)
		if err != nil {
			return pull{}, false, err
		}
		var newest pull
		for _, p := range pulls {
			if p.branch == branch && p.number > newest.number {
				newest = p
			}
		}
		if newest.number > 0 {
			return newest, true, nil
		}
	}
	return pull{}, false, nil
}

// open is host's.
func (g *gitea) open(ctx context.Context) ([]pull, error) {
	return g.list(ctx, "state=open", maxPages)
}

// list reads pages until one is empty: a server may have a smaller limit than
// the one asked for.
func (g *gitea) list(ctx context.Context, query string, pages int) ([]pull, error) {
	var all []pull
	for page := 1; page <= pages; page++ {
		var pulls []giteaPull
		path := fmt.Sprintf("%s/pulls?%s&base_branch=%s&limit=%d&page=%d", g.repo, query, url.QueryEscape(g.base), perPage, page)
		if err := g.call(ctx, http.MethodGet, path, nil, &pulls); err != nil {
			return nil, err
		}
		if len(pulls) == 0 {
			break
		}
		for _, p := range pulls {
			if p.Head.RepoID == p.Base.RepoID {
				all = append(all, p.pull())
			}
		}
	}
	return all, nil
}

// create is host's.
func (g *gitea) create(ctx context.Context, branch string, t text) (pull, error) {
	var made giteaPull
	err := g.call(ctx, http.MethodPost, g.repo+"/pulls", map[string]any{"title": t.title, "body": t.body, "head": branch, "base": g.base}, &made)
	return made.pull(), err
}

// edit is host's.
func (g *gitea) edit(ctx context.Context, p pull, t text, closed bool) error {
	change := map[string]any{"title": t.title, "body": t.body}
	if closed {
		change["state"] = "closed"
	}
	return g.call(ctx, http.MethodPatch, fmt.Sprintf("%s/pulls/%d", g.repo, p.number), change, nil)
}

// ask is host's.
func (g *gitea) ask(ctx context.Context, p pull, reviewers []string) error {
	return g.call(ctx, http.MethodPost, fmt.Sprintf("%s/pulls/%d/requested_reviewers", g.repo, p.number), reviewRequest(reviewers), nil)
}

// label is host's. Gitea ignores names that it does not know, so those are made
// first. Labels of an organisation are known to it, too.
func (g *gitea) label(ctx context.Context, p pull, labels []string) error {
	path := fmt.Sprintf("%s/issues/%d/labels", g.repo, p.number)
	var added []struct {
		Name string `json:"name"`
	}
	if err := g.call(ctx, http.MethodPost, path, map[string]any{"labels": labels}, &added); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, l := range added {
		known[strings.ToLower(l.Name)] = true
	}
	missing := false
	for _, name := range labels {
		if known[strings.ToLower(name)] {
			continue
		}
		missing = true
		if err := g.call(ctx, http.MethodPost, g.repo+"/labels", map[string]any{"name": name, "color": "#0e8a16"}, nil); err != nil {
			return err
		}
	}
	if !missing {
		return nil
	}
	return g.call(ctx, http.MethodPost, path, map[string]any{"labels": labels}, nil)
}

// statuses is host's.
func (g *gitea) statuses(ctx context.Context, commit string) (map[string]status, error) {
	return combinedStatuses(ctx, g.caller, g.repo+"/commits/"+commit+"/status?limit=")
}

// setStatus is host's.
func (g *gitea) setStatus(ctx context.Context, commit, name string, s status) error {
	return g.call(ctx, http.MethodPost, g.repo+"/statuses/"+commit,
		map[string]any{"state": s.state, "context": name, "description": s.description}, nil)
}
