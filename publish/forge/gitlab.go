package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// gitLab is GitLab's REST API, version 4.
type gitLab struct {
	*caller
	project string // /projects/group%2Fname
	base    string
}

func newGitLab(c *caller, repository, base string) host {
	c.authorize = func(h http.Header, token string) { h.Set("Private-Token", token) }
	return &gitLab{caller: c, project: "/projects/" + url.PathEscape(repository), base: base}
}

type gitLabMerge struct {
	IID           int      `json:"iid"`
	Title         string   `json:"title"`
	Description   string   `json:"description"`
	State         string   `json:"state"` // opened, closed, locked, merged
	SourceBranch  string   `json:"source_branch"`
	SHA           string   `json:"sha"`
	SourceProject int64    `json:"source_project_id"`
	TargetProject int64    `json:"target_project_id"`
	Labels        []string `json:"labels"`
}

func (m gitLabMerge) pull() pull {
	return pull{
		number: m.IID, text: text{m.Title, m.Description}, branch: m.SourceBranch, commit: m.SHA,
		isOpen: m.State == "opened", merged: m.State == "merged" || m.State == "locked", labels: m.Labels,
	}
}

// find is host's.
func (g *gitLab) find(ctx context.Context, branch string) (pull, bool, error) {
	for _, state := range []string{"opened", "all"} {
		query := url.Values{"source_branch": {branch}, "state": {state}, "order_by": {"created_at"}, "sort": {"desc"}, "per_page": {fmt.Sprint(perPage)}}
		var merges []gitLabMerge
		if err := g.call(ctx, http.MethodGet, g.project+"/merge_requests?"+query.Encode(), nil, &merges); err != nil {
			return pull{}, false, err
		}
		for _, m := range merges {
			if m.SourceProject == m.TargetProject {
				return m.pull(), true, nil
			}
		}
	}
	return pull{}, false, nil
}

// open is host's.
func (g *gitLab) open(ctx context.Context) ([]pull, error) {
	var all []pull
	for page := 1; page <= maxPages; page++ {
		var merges []gitLabMerge
		if err := g.call(ctx, http.MethodGet, fmt.Sprintf("%s/merge_requests?state=opened&per_page=%d&page=%d", g.project, perPage, page), nil, &merges); err != nil {
			return nil, err
		}
		for _, m := range merges {
			if m.SourceProject == m.TargetProject {
				all = append(all, m.pull())
			}
		}
		if len(merges) < perPage {
			break
		}
	}
	return all, nil
}

// create is host's.
func (g *gitLab) create(ctx context.Context, branch string, t text) (pull, error) {
	var made gitLabMerge
	err := g.call(ctx, http.MethodPost, g.project+"/merge_requests",
		map[string]any{"source_branch": branch, "target_branch": g.base, "title": t.title, "description": t.body}, &made)
	return made.pull(), err
}

// edit is host's.
func (g *gitLab) edit(ctx context.Context, p pull, t text, closed bool) error {
	change := map[string]any{"title": t.title, "description": t.body}
	if closed {
		change["state_event"] = "close"
	}
	return g.call(ctx, http.MethodPut, fmt.Sprintf("%s/merge_requests/%d", g.project, p.number), change, nil)
}

// ask is host's. GitLab wants the ids of users, and has no teams.
func (g *gitLab) ask(ctx context.Context, p pull, reviewers []string) error {
	var ids []int64
	var unknown []string
	for _, name := range reviewers {
		var users []struct {
			ID int64 `json:"id"`
		}
		if err := g.call(ctx, http.MethodGet, "/users?username="+url.QueryEscape(name), nil, &users); err != nil {
			return err
		}
		if len(users) == 0 {
			unknown = append(unknown, name)
			continue
		}
		ids = append(ids, users[0].ID)
	}
	if len(ids) > 0 {
		if err := g.call(ctx, http.MethodPut, fmt.Sprintf("%s/merge_requests/%d", g.project, p.number), map[string]any{"reviewer_ids": ids}, nil); err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		return &requestError{method: http.MethodGet, path: "/users", status: http.StatusUnprocessableEntity, message: "no such user: " + strings.Join(unknown, ", ")}
	}
	return nil
}

// label is host's. GitLab makes labels that do not exist.
func (g *gitLab) label(ctx context.Context, p pull, labels []string) error {
	return g.call(ctx, http.MethodPut, fmt.Sprintf("%s/merge_requests/%d", g.project, p.number), map[string]any{"add_labels": strings.Join(labels, ",")}, nil)
}

// gitLabStates are GitLab's words for the states of a status.
var gitLabStates = map[statusState]string{pending: "running", success: "success", failure: "failed"}

// statuses is host's. Without all=true GitLab lists the newest of each name.
func (g *gitLab) statuses(ctx context.Context, commit string) (map[string]status, error) {
	found := map[string]status{}
	for page := 1; page <= maxPages; page++ {
		var listed []struct {
			Name        string `json:"name"`
			Status      string `json:"status"`
			Description string `json:"description"`
		}
		if err := g.call(ctx, http.MethodGet, fmt.Sprintf("%s/repository/commits/%s/statuses?per_page=%d&page=%d", g.project, commit, perPage, page), nil, &listed); err != nil {
			return nil, err
		}
		for _, s := range listed {
			for ours, theirs := range gitLabStates {
				if theirs == s.Status {
					found[s.Name] = status{state: ours, description: s.Description}
				}
			}
		}
		if len(listed) < perPage {
			break
		}
	}
	return found, nil
}

// setStatus is host's. Older versions refuse a status that is the same but for
// its description: nothing can be done, and nothing is wrong.
func (g *gitLab) setStatus(ctx context.Context, commit, name string, s status) error {
	err := g.call(ctx, http.MethodPost, g.project+"/statuses/"+commit,
		map[string]any{"state": gitLabStates[s.state], "name": name, "description": s.description, "ref": g.base}, nil)
	var refused *requestError
	if errors.As(err, &refused) && refused.status == http.StatusBadRequest && strings.Contains(refused.message, "Cannot transition status") {
		return nil
	}
	return err
}
