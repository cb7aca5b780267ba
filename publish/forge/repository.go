package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// repository is the common part of the APIs of GitHub and Gitea. Gitea copied GitHub's API.
type repository struct {
	*api
	path string // /repos/owner/name
	base string // the base branch of pull requests
}

func (r repository) newPull(branch string, t text) map[string]any {
	return map[string]any{"title": t.title, "body": t.body, "head": branch, "base": r.base}
}

func (r repository) edit(ctx context.Context, p pull, t text, closed bool) error {
	change := map[string]any{"title": t.title, "body": t.body}
	if closed {
		change["state"] = "closed"
	}
	return r.call(ctx, http.MethodPatch, fmt.Sprintf("%s/pulls/%d", r.path, p.number), change, nil)
}

// ask implements announcer. A reviewer with a slash, such as org/team, is a team.
func (r repository) ask(ctx context.Context, p pull, reviewers []string) error {
	request := map[string][]string{}
	for _, name := range reviewers {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			request["team_reviewers"] = append(request["team_reviewers"], team)
		} else {
			request["reviewers"] = append(request["reviewers"], name)
		}
	}
	return r.call(ctx, http.MethodPost, fmt.Sprintf("%s/pulls/%d/requested_reviewers", r.path, p.number), request, nil)
}

// combined reads the combined status of a commit. The argument size is the API's name for the page size.
func (r repository) combined(ctx context.Context, commit, size string) (map[string]status, error) {
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
		path := fmt.Sprintf("%s/commits/%s/status?%s=%d&page=%d", r.path, commit, size, perPage, page)
		if err := r.call(ctx, http.MethodGet, path, nil, &combined); err != nil {
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

func (r repository) setStatus(ctx context.Context, commit, name string, s status) error {
	return r.call(ctx, http.MethodPost, r.path+"/statuses/"+commit,
		map[string]any{"state": s.state, "context": name, "description": s.description}, nil)
}

func (r repository) isProtected(ctx context.Context, branch string) (bool, error) {
	return r.protected(ctx, r.path+"/branches/"+branch)
}

// protected reads whether a branch is protected. All supported forges use the same field.
func (a *api) protected(ctx context.Context, path string) (bool, error) {
	var answer struct {
		Protected bool `json:"protected"`
	}
	err := a.call(ctx, http.MethodGet, path, nil, &answer)
	return answer.Protected, err
}
