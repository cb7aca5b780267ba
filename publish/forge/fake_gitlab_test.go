package forge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// serveGitLab serves the requests of gitrollout as docs.gitlab.com/api documents them, in version 4.
func serveGitLab(f *fake, r *http.Request) (code int, body any) {
	if r.Header.Get("Private-Token") != f.token {
		return http.StatusUnauthorized, message("401 Unauthorized")
	}
	path := r.URL.EscapedPath()
	if r.Method == http.MethodGet && path == "/api/v4/users" {
		f.query(r, 20, "username")
		users, name := []any{}, r.URL.Query().Get("username")
		if id := f.users[name]; id != 0 {
			users = append(users, map[string]any{"id": id, "username": name})
		}
		return http.StatusOK, users
	}
	rest, ok := strings.CutPrefix(path, "/api/v4/projects/acme%2Fteam%2Fdeploy/")
	if !ok {
		return http.StatusNotFound, message("404 Project Not Found")
	}
	parts := strings.Split(rest, "/")
	switch {
	case r.Method == http.MethodGet && rest == "merge_requests":
		from, to := f.query(r, 20, "source_branch", "state", "order_by", "sort")
		q := r.URL.Query()
		found := f.newestFirst(func(p *fakePull) bool {
			return (q.Get("source_branch") == "" || q.Get("source_branch") == p.branch) && (q.Get("state") != "opened" || p.isOpen())
		})
		return http.StatusOK, rollout.Mapped(page(found, from, to), gitLabJSON)
	case r.Method == http.MethodPost && rest == "merge_requests":
		return gitLabCreate(f, r)
	case r.Method == http.MethodPut && parts[0] == "merge_requests" && len(parts) == 2:
		return gitLabEdit(f, r, f.pull(parts[1]))
	case r.Method == http.MethodGet && parts[0] == "repository" && len(parts) == 4 && parts[1] == "commits" && parts[3] == "statuses":
		from, to := f.query(r, 20, "ref", "name", "all")
		return http.StatusOK, page(newestStatuses(f, parts[2], "name", "status"), from, to)
	case r.Method == http.MethodPost && parts[0] == "statuses" && len(parts) == 2:
		return gitLabStatus(f, r, parts[1])
	default:
		return f.undocumented(r)
	}
}

func gitLabCreate(f *fake, r *http.Request) (code int, body any) {
	sent := f.decode(r, "source_branch", "target_branch", "title", "description", "labels", "reviewer_ids", "remove_source_branch", "squash")
	branch, _ := sent["source_branch"].(string)
	title, _ := sent["title"].(string)
	text, _ := sent["description"].(string)
	if title == "" || branch == "" || sent["target_branch"] != "main" {
		return http.StatusBadRequest, map[string]any{"error": "title is missing"}
	}
	if same := f.open(branch); len(same) > 0 {
		return http.StatusConflict, map[string]any{"message": []any{
			fmt.Sprintf("Another open merge request already exists for this source branch: !%d", same[0].number)}}
	}
	return http.StatusCreated, gitLabJSON(f.add(fakePull{title: title, body: text, branch: branch, commit: f.branches[branch]}))
}

func gitLabEdit(f *fake, r *http.Request, p *fakePull) (code int, body any) {
	sent := f.decode(r, "title", "description", "state_event", "add_labels", "labels", "reviewer_ids")
	if p == nil {
		return http.StatusNotFound, message("404 Not found")
	}
	if len(sent) == 0 {
		return http.StatusBadRequest, map[string]any{"error": "at least one parameter must be provided"}
	}
	if title, has := sent["title"].(string); has {
		p.title = title
	}
	if text, has := sent["description"].(string); has {
		p.body = text
	}
	if labels, has := sent["add_labels"].(string); has {
		p.labels = append(p.labels, strings.Split(labels, ",")...)
	}
	if ids, has := sent["reviewer_ids"].([]any); has {
		p.reviewers = nil
		for name, id := range f.users {
			if slices.Contains(ids, any(float64(id))) {
				p.reviewers = append(p.reviewers, name)
			}
		}
	}
	p.closed = p.closed || sent["state_event"] == "close"
	return http.StatusOK, gitLabJSON(p)
}

func gitLabStatus(f *fake, r *http.Request, commit string) (code int, body any) {
	sent := f.decode(r, "state", "ref", "name", "context", "target_url", "description", "coverage", "pipeline_id")
	s := fakeStatus{}
	s.Context, _ = sent["name"].(string)
	s.State, _ = sent["state"].(string)
	s.Description, _ = sent["description"].(string)
	if !slices.Contains([]string{"pending", "running", "success", "failed", "canceled", "skipped"}, s.State) ||
		len([]rune(s.Description)) > 255 {
		return http.StatusBadRequest, map[string]any{"error": "state does not have a valid value"}
	}
	for _, known := range slices.Backward(f.statuses[commit]) {
		if known.Context == s.Context {
			if known.State == s.State { // GitLab before 18 refuses a status with an unchanged state
				return http.StatusBadRequest,
					message(`Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")`)
			}
			break
		}
	}
	f.statuses[commit] = append(f.statuses[commit], s)
	return http.StatusCreated, map[string]any{"status": s.State}
}

func gitLabJSON(p *fakePull) map[string]any {
	source := 1
	if p.fork {
		source = 2
	}
	return map[string]any{"iid": p.number, "title": p.title, "description": p.body, "state": p.state("opened"), "sha": p.commit,
		"source_branch": p.branch, "target_branch": "main", "source_project_id": source, "target_project_id": 1,
		"labels": append([]string{}, p.labels...)}
}
