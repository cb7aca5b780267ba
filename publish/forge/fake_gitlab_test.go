package forge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// serveGitLab follows docs.gitlab.com/api, version 4.
func serveGitLab(f *fake, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Private-Token") != f.token {
		f.answer(w, http.StatusUnauthorized, map[string]any{"message": "401 Unauthorized"})
		return
	}
	path := r.URL.EscapedPath()
	if r.Method == http.MethodGet && path == "/api/v4/users" {
		f.query(r, 20, "username")
		users := []any{}
		if id := f.users[r.URL.Query().Get("username")]; id != 0 {
			users = append(users, map[string]any{"id": id, "username": r.URL.Query().Get("username")})
		}
		f.answer(w, http.StatusOK, users)
		return
	}
	rest, ok := strings.CutPrefix(path, "/api/v4/projects/acme%2Fteam%2Fdeploy/")
	if !ok {
		f.answer(w, http.StatusNotFound, map[string]any{"message": "404 Project Not Found"})
		return
	}
	parts := strings.Split(rest, "/")
	switch {
	case r.Method == http.MethodGet && rest == "merge_requests":
		from, to := f.query(r, 20, "source_branch", "state", "order_by", "sort")
		q := r.URL.Query()
		found := f.newestFirst(func(p *fakePull) bool {
			return (q.Get("source_branch") == "" || q.Get("source_branch") == p.branch) && (q.Get("state") != "opened" || (!p.closed && !p.merged))
		})
		all := []any{}
		for _, p := range page(found, from, to) {
			all = append(all, gitLabJSON(p))
		}
		f.answer(w, http.StatusOK, all)
	case r.Method == http.MethodPost && rest == "merge_requests":
		gitLabCreate(f, w, r)
	case r.Method == http.MethodPut && parts[0] == "merge_requests" && len(parts) == 2:
		gitLabEdit(f, w, r, f.pull(parts[1]))
	case r.Method == http.MethodGet && parts[0] == "repository" && len(parts) == 4 && parts[1] == "commits" && parts[3] == "statuses":
		from, to := f.query(r, 20, "ref", "name", "all")
		f.answer(w, http.StatusOK, page(newestStatuses(f, parts[2], "name", "status"), from, to))
	case r.Method == http.MethodPost && parts[0] == "statuses" && len(parts) == 2:
		gitLabStatus(f, w, r, parts[1])
	default:
		f.t.Errorf("%s %s is not documented", r.Method, r.URL)
		f.answer(w, http.StatusNotFound, map[string]any{"error": "404 Not Found"})
	}
}

func gitLabCreate(f *fake, w http.ResponseWriter, r *http.Request) {
	body := f.decode(r, "source_branch", "target_branch", "title", "description", "labels", "reviewer_ids", "remove_source_branch", "squash")
	branch, _ := body["source_branch"].(string)
	title, _ := body["title"].(string)
	text, _ := body["description"].(string)
	if title == "" || branch == "" || body["target_branch"] != "main" {
		f.answer(w, http.StatusBadRequest, map[string]any{"error": "title is missing"})
		return
	}
	if same := f.newestFirst(func(p *fakePull) bool { return p.branch == branch && !p.fork && !p.closed && !p.merged }); len(same) > 0 {
		f.answer(w, http.StatusConflict,
			map[string]any{"message": []any{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", same[0].number)}})
		return
	}
	f.answer(w, http.StatusCreated, gitLabJSON(f.add(fakePull{title: title, body: text, branch: branch, commit: f.branches[branch]})))
}

func gitLabEdit(f *fake, w http.ResponseWriter, r *http.Request, p *fakePull) {
	body := f.decode(r, "title", "description", "state_event", "add_labels", "labels", "reviewer_ids")
	if p == nil {
		f.answer(w, http.StatusNotFound, map[string]any{"message": "404 Not found"})
		return
	}
	if len(body) == 0 {
		f.answer(w, http.StatusBadRequest, map[string]any{"error": "at least one parameter must be provided"})
		return
	}
	if title, has := body["title"].(string); has {
		p.title = title
	}
	if text, has := body["description"].(string); has {
		p.body = text
	}
	if labels, has := body["add_labels"].(string); has {
		p.labels = append(p.labels, strings.Split(labels, ",")...)
	}
	if ids, has := body["reviewer_ids"].([]any); has {
		p.reviewers = nil
		for name, id := range f.users {
			if slices.Contains(ids, any(float64(id))) {
				p.reviewers = append(p.reviewers, name)
			}
		}
	}
	if body["state_event"] == "close" {
		p.closed = true
	}
	f.answer(w, http.StatusOK, gitLabJSON(p))
}

func gitLabStatus(f *fake, w http.ResponseWriter, r *http.Request, commit string) {
	body := f.decode(r, "state", "ref", "name", "context", "target_url", "description", "coverage", "pipeline_id")
	s := fakeStatus{}
	s.Context, _ = body["name"].(string)
	s.State, _ = body["state"].(string)
	s.Description, _ = body["description"].(string)
	if !slices.Contains([]string{"pending", "running", "success", "failed", "canceled", "skipped"}, s.State) ||
		len([]rune(s.Description)) > 255 {
		f.answer(w, http.StatusBadRequest, map[string]any{"error": "state does not have a valid value"})
		return
	}
	for _, known := range slices.Backward(f.statuses[commit]) {
		if known.Context == s.Context {
			if known.State == s.State { // as in versions before 18
				f.answer(w, http.StatusBadRequest,
					map[string]any{"message": `Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")`})
				return
			}
			break
		}
	}
	f.statuses[commit] = append(f.statuses[commit], s)
	f.answer(w, http.StatusCreated, map[string]any{"status": s.State})
}

func gitLabJSON(p *fakePull) map[string]any {
	state := "opened"
	switch {
	case p.merged:
		state = "merged"
	case p.closed:
		state = "closed"
	}
	source := 1
	if p.fork {
		source = 2
	}
	return map[string]any{"iid": p.number, "title": p.title, "description": p.body, "state": state, "source_branch": p.branch,
		"target_branch": "main",
		"sha":           p.commit, "source_project_id": source, "target_project_id": 1, "labels": append([]string{}, p.labels...)}
}
