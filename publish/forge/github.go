package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// gitHub is GitHub's REST API, version 2022-11-28.
type gitHub struct {
	*caller
	repo  string // /repos/owner/name
	owner string
	base  string
}

func newGitHub(c *caller, repository, base string) host {
	owner, _, _ := strings.Cut(repository, "/")
	c.authorize = func(h http.Header, token string) {
		h.Set("Authorization", "Bearer "+token)
		h.Set("Accept", "application/vnd.github+json")
		h.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	return &gitHub{caller: c, repo: "/repos/" + repository, owner: owner, base: base}
}

// gitHubAPI: github.com and GitHub's hosted tenants have a host of its own for
// the API, an Enterprise Server has a path.
func gitHubAPI(address string) string {
	u, err := url.Parse(address)
	if err == nil && (u.Host == "github.com" || strings.HasSuffix(u.Host, ".ghe.com")) {
		return "https://api." + u.Host
	}
	return address + "/api/v3"
}

type gitHubPull struct {
	Number   int     `json:"number"`
	Title    string  `json:"title"`
	Body     *string `json:"body"`
	State    string  `json:"state"`
	MergedAt *string `json:"merged_at"`
	Head     struct {
		Ref  string `json:"ref"`
		SHA  string `json:"sha"`
		Repo *struct {
			ID int64 `json:"id"`
		} `json:"repo"`
	} `json:"head"`
	Base struct {
		Repo struct {
			ID int64 `json:"id"`
		} `json:"repo"`
	} `json:"base"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

// foreign tells a fork's pull request. A deleted fork has no repository.
func (p gitHubPull) foreign() bool { return p.Head.Repo == nil || p.Head.Repo.ID != p.Base.Repo.ID }

func (p gitHubPull) pull() pull {
	q := pull{number: p.Number, text: text{title: p.Title}, branch: p.Head.Ref, commit: p.Head.SHA, isOpen: p.State == "open", merged: p.MergedAt != nil}
	if p.Body != nil {
		q.body = *p.Body
	}
	for _, l := range p.Labels {
		q.labels = append(q.labels, l.Name)
	}
	return q
}

// find is host's. GitHub filters by head and sorts by age.
func (g *gitHub) find(ctx context.Context, branch string) (pull, bool, error) {
	var newest pull
	for _, state := range []string{"open", "closed"} {
		query := url.Values{"head": {g.owner + ":" + branch}, "state": {state}, "sort": {"created"}, "direction": {"desc"}, "per_page": {"1"}}
		var pulls []gitHubPull
		if err := g.call(ctx, http.MethodGet, g.repo+"/pulls?"+query.Encode(), nil, &pulls); err != nil {
			return pull{}, false, err
		}
		if len(pulls) > 0 {
			newest = pulls[0].pull()
			return newest, true, nil
		}
	}
	return pull{}, false, nil
}

// open is host's.
func (g *gitHub) open(ctx context.Context) ([]pull, error) {
	var all []pull
	for page := 1; page <= maxPages; page++ {
		var pulls []gitHubPull
		if err := g.call(ctx, http.MethodGet, fmt.Sprintf("%s/pulls?state=open&per_page=%d&page=%d", g.repo, perPage, page), nil, &pulls); err != nil {
			return nil, err
		}
		for _, p := range pulls {
			if !p.foreign() {
				all = append(all, p.pull())
			}
		}
		if len(pulls) < perPage {
			break
		}
	}
	return all, nil
}

// create is host's.
func (g *gitHub) create(ctx context.Context, branch string, t text) (pull, error) {
	var made gitHubPull
	err := g.call(ctx, http.MethodPost, g.repo+"/pulls", map[string]any{"title": t.title, "body": t.body, "head": branch, "base": g.base}, &made)
	return made.pull(), err
}

// edit is host's.
func (g *gitHub) edit(ctx context.Context, p pull, t text, closed bool) error {
	change := map[string]any{"title": t.title, "body": t.body}
	if closed {
		change["state"] = "closed"
	}
	return g.call(ctx, http.MethodPatch, fmt.Sprintf("%s/pulls/%d", g.repo, p.number), change, nil)
}

// ask is host's.
func (g *gitHub) ask(ctx context.Context, p pull, reviewers []string) error {
	return g.call(ctx, http.MethodPost, fmt.Sprintf("%s/pulls/%d/requested_reviewers", g.repo, p.number), reviewRequest(reviewers), nil)
}

// reviewRequest tells users from teams, whose names are org/team.
func reviewRequest(reviewers []string) map[string][]string {
	request := map[string][]string{}
	for _, name := range reviewers {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			request["team_reviewers"] = append(request["team_reviewers"], team)
		} else {
			request["reviewers"] = append(request["reviewers"], name)
		}
	}
	return request
}

// label is host's. GitHub makes labels that do not exist.
func (g *gitHub) label(ctx context.Context, p pull, labels []string) error {
	return g.call(ctx, http.MethodPost, fmt.Sprintf("%s/issues/%d/labels", g.repo, p.number), map[string]any{"labels": labels}, nil)
}

// statuses is host's. The combined status has the newest of each context.
func (g *gitHub) statuses(ctx context.Context, commit string) (map[string]status, error) {
	return combinedStatuses(ctx, g.caller, g.repo+"/commits/"+commit+"/status?per_page=")
}

// combinedStatuses reads what GitHub and Gitea call the combined status.
func combinedStatuses(ctx context.Context, c *caller, path string) (map[string]status, error) {
	found := map[string]status{}
	for page := 1; page <= maxPages; page++ {
		var combined struct {
			Statuses []struct {
				Context     string      `json:"context"`
				State       statusState `json:"state"`  // GitHub
				Status      statusState `json:"status"` // Gitea
				Description string      `json:"description"`
			} `json:"statuses"`
		}
		if err := c.call(ctx, http.MethodGet, fmt.Sprintf("%s%d&page=%d", path, perPage, page), nil, &combined); err != nil {
			return nil, err
		}
		for _, s := range combined.Statuses {
			found[s.Context] = status{state: s.State + s.Status, description: s.Description}
		}
		if len(combined.Statuses) < perPage {
			break
		}
	}
	return found, nil
}

// setStatus is host's.
func (g *gitHub) setStatus(ctx context.Context, commit, name string, s status) error {
	return g.call(ctx, http.MethodPost, g.repo+"/statuses/"+commit,
		map[string]any{"state": s.state, "context": name, "description": s.description}, nil)
}
