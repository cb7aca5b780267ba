package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

type repository struct {
	*api
	path string // /repos/OWNER/NAME
	base string // base branch of the pull requests
	size string // query parameter
}

// repositoryPull is a pull request. GitHub's and Gitea's APIs each have only some of the fields.
type repositoryPull struct {
	Number   int               `json:"number"`
	Title    string            `json:"title"`
	Body     string            `json:"body"`
	State    string            `json:"state"`
	Merged   bool              `json:"merged"`
	MergedAt *string           `json:"merged_at"`
	Head     repositorySide    `json:"head"`
	Base     repositorySide    `json:"base"`
	Labels   []repositoryLabel `json:"labels"`
}

type repositoryLabel struct {
	Name string `json:"name"`
}

type repositorySide struct {
	Ref    string `json:"ref"`   // branch; Gitea changes this when the branch is removed
	Label  string `json:"label"` // branch, at Gitea
	SHA    string `json:"sha"`
	RepoID int64  `json:"repo_id"` // Gitea
	Repo   *struct {
		ID int64 `json:"id"`
	} `json:"repo"` // GitHub
}

func (p repositoryPull) pull(branch string) pull {
	return pull{
		number: p.Number, text: text{p.Title, p.Body}, branch: branch, commit: p.Head.SHA, isOpen: p.State == "open",
		merged: p.Merged || p.MergedAt != nil,
		labels: rollout.Mapped(p.Labels, func(l repositoryLabel) string { return l.Name }),
	}
}

func (r repository) create(ctx context.Context, branch string, t text) (pull, error) {
	var made repositoryPull
	err := r.call(ctx, http.MethodPost, r.path+"/pulls",
		map[string]any{"title": t.title, "body": t.body, "head": branch, "base": r.base}, &made)
	return made.pull(branch), err
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

// statuses implements marker. The combined status has the newest status of each context.
func (r repository) statuses(ctx context.Context, commit string) (map[string]status, error) {
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
		path := fmt.Sprintf("%s/commits/%s/status?%s=%d&page=%d", r.path, commit, r.size, perPage, page)
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

func (a *api) protected(ctx context.Context, path string) (bool, error) {
	var answer struct {
		Protected bool `json:"protected"`
	}
	err := a.call(ctx, http.MethodGet, path, nil, &answer)
	return answer.Protected, err
}
