package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// gitea is version 1 of the API of Gitea and Forgejo.
var gitea = kind{
	name:   rollout.Gitea,
	isAt:   func(host string) bool { return host == "gitea.com" || host == "codeberg.org" },
	api:    func(address string) string { return address + "/api/v1" },
	header: func(token string) http.Header { return http.Header{"Authorization": {"token " + token}} },
	client: func(a *api, path, base string) host {
		return &giteaRepository{repository{a, "/repos/" + path, base, "limit"}}
	},
	comments:   issueComments,
	commitPage: below("/commit/"),
	branchPage: below("/src/branch/"),
	pullPage: func(base, branch string) string {
		return "/compare/" + url.PathEscape(base) + "..." + url.PathEscape(branch)
	},
	signature: func(r hookRequest) (given, right bool) {
		if given, right = r.hub("X-Gitea-Signature", ""); given {
			return given, right
		}
		return r.hub("X-Forgejo-Signature", "")
	},
	isPush: func(h http.Header) bool {
		return h.Get("X-Gitea-Event") == "push" || h.Get("X-Forgejo-Event") == "push"
	},
}

type giteaRepository struct{ repository }

// find implements pullAPI. It reads pages of pull requests, because Gitea cannot filter by head branch.
func (g *giteaRepository) find(ctx context.Context, branch string) (pull, bool, error) {
	for _, list := range []struct {
		query string
		pages int
	}{{"state=open", maxPages}, {"state=closed&sort=recentupdate", 2}} {
		pulls, err := g.list(ctx, list.query, list.pages)
		if err != nil {
			return pull{}, false, err
		}
		pulls = slices.DeleteFunc(pulls, func(p pull) bool { return p.branch != branch })
		if len(pulls) > 0 {
			return slices.MaxFunc(pulls, func(a, b pull) int { return a.number - b.number }), true, nil
		}
	}
	return pull{}, false, nil
}

func (g *giteaRepository) open(ctx context.Context) ([]pull, error) {
	return g.list(ctx, "state=open", maxPages)
}

// list reads until a page is empty, because a server may return fewer items than requested.
func (g *giteaRepository) list(ctx context.Context, query string, pages int) (all []pull, err error) {
	for page := 1; page <= pages; page++ {
		var pulls []repositoryPull
		path := fmt.Sprintf("%s/pulls?%s&base_branch=%s&limit=%d&page=%d",
			g.path, query, url.QueryEscape(g.base), perPage, page)
		if err := g.call(ctx, http.MethodGet, path, nil, &pulls); err != nil {
			return nil, err
		}
		if len(pulls) == 0 {
			break
		}
		pulls = slices.DeleteFunc(pulls, func(p repositoryPull) bool { return p.Head.RepoID != p.Base.RepoID })
		all = append(all, rollout.Mapped(pulls, func(p repositoryPull) pull { return p.pull(p.Head.Label) })...)
	}
	return all, nil
}

// label implements announcer. Gitea ignores unknown labels, so label creates them and adds all labels again.
func (g *giteaRepository) label(ctx context.Context, p pull, labels []string) error {
	path := fmt.Sprintf("%s/issues/%d/labels", g.path, p.number)
	var added []repositoryLabel
	if err := g.call(ctx, http.MethodPost, path, map[string]any{"labels": labels}, &added); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, l := range added {
		known[strings.ToLower(l.Name)] = true
	}
	missing := slices.DeleteFunc(slices.Clone(labels), func(name string) bool { return known[strings.ToLower(name)] })
	for _, name := range missing {
		label := map[string]any{"name": name, "color": "#0e8a16"}
		if err := g.call(ctx, http.MethodPost, g.path+"/labels", label, nil); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return g.call(ctx, http.MethodPost, path, map[string]any{"labels": labels}, nil)
}
