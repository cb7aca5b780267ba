package forge

import (
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// serveGitHub serves the requests of gitrollout as docs.github.com/rest documents them, in version 2022-11-28.
func serveGitHub(f *fake, r *http.Request) (code int, body any) {
	if r.Header.Get("User-Agent") == "" {
		f.t.Errorf("%s %s: GitHub refuses requests without a User-Agent", r.Method, r.URL)
	}
	if r.Header.Get("X-GitHub-Api-Version") != "2022-11-28" || r.Header.Get("Accept") != "application/vnd.github+json" {
		f.t.Errorf("%s %s: headers %v", r.Method, r.URL, r.Header)
	}
	if r.Header.Get("Authorization") != "Bearer "+f.token {
		return http.StatusUnauthorized, message("Bad credentials")
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v3/repos/acme/deploy")
	if !ok {
		return http.StatusNotFound, message("Not Found")
	}
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	switch shape := r.Method + " " + parts[0] + " " + strings.Join(parts[min(2, len(parts)):], "/"); shape {
	case "GET pulls ":
		from, to := f.query(r, 30, "head", "state", "sort", "direction", "base")
		q := r.URL.Query()
		found := f.newestFirst(func(p *fakePull) bool {
			owner := "acme"
			if p.fork {
				owner = "mallory"
			}
			return (q.Get("head") == "" || q.Get("head") == owner+":"+p.branch) &&
				(q.Get("state") == "all" || p.isOpen() == (q.Get("state") == "open" || q.Get("state") == ""))
		})
		return http.StatusOK, rollout.Mapped(page(found, from, to), gitHubJSON)
	case "POST pulls ":
		body := f.decode(r, "title", "body", "head", "base", "draft", "maintainer_can_modify")
		branch, _ := body["head"].(string)
		title, _ := body["title"].(string)
		text, _ := body["body"].(string)
		if title == "" || f.branches[branch] == "" || body["base"] != "main" || len(f.open(branch)) > 0 {
			return http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed",
				"errors": []any{map[string]any{"resource": "PullRequest", "message": "A pull request already exists for acme:" + branch}}}
		}
		return http.StatusCreated, gitHubJSON(f.add(fakePull{title: title, body: text, branch: branch, commit: f.branches[branch]}))
	case "PATCH pulls ":
		p := f.pull(parts[1])
		body := f.decode(r, "title", "body", "state", "base", "maintainer_can_modify")
		if p == nil {
			return http.StatusNotFound, message("Not Found")
		}
		p.title, p.body = body["title"].(string), body["body"].(string)
		p.closed = p.closed || body["state"] == "closed"
		return http.StatusOK, gitHubJSON(p)
	default:
		return serveGitHubMore(f, r, parts, shape)
	}
}

func serveGitHubMore(f *fake, r *http.Request, parts []string, shape string) (code int, body any) {
	switch shape {
	case "POST issues labels":
		p := f.pull(parts[1])
		for _, l := range f.decode(r, "labels")["labels"].([]any) {
			p.labels = append(p.labels, l.(string))
		}
		return http.StatusOK, []any{}
	case "POST pulls requested_reviewers":
		p := f.pull(parts[1])
		body := f.decode(r, "reviewers", "team_reviewers")
		for _, key := range []string{"reviewers", "team_reviewers"} {
			names, _ := body[key].([]any)
			for _, n := range names {
				if name := n.(string); key == "reviewers" && f.users[name] == 0 {
					return http.StatusUnprocessableEntity, message("Reviews may only be requested from collaborators.")
				} else if !slices.Contains(p.reviewers, name) {
					p.reviewers = append(p.reviewers, name)
				}
			}
		}
		return http.StatusCreated, gitHubJSON(p)
	case "GET commits status":
		from, to := f.query(r, 30)
		newest := newestStatuses(f, parts[1], "context", "state")
		return http.StatusOK, map[string]any{"sha": parts[1], "statuses": page(newest, from, to)}
	case "POST statuses ":
		body := f.decode(r, "state", "target_url", "description", "context")
		state, _ := body["state"].(string)
		text, _ := body["description"].(string)
		if !slices.Contains([]string{"error", "failure", "pending", "success"}, state) || len([]rune(text)) > 140 || len(parts[1]) != 40 {
			return http.StatusUnprocessableEntity, message("Validation Failed")
		}
		f.statuses[parts[1]] = append(f.statuses[parts[1]], fakeStatus{body["context"].(string), state, text})
		return http.StatusCreated, map[string]any{"state": state}
	default:
		return f.undocumented(r)
	}
}

func newestStatuses(f *fake, commit, name, state string) []map[string]any {
	newest := []map[string]any{}
	known := map[string]bool{}
	for _, s := range slices.Backward(f.statuses[commit]) {
		if !known[s.Context] {
			known[s.Context] = true
			newest = append(newest, map[string]any{name: s.Context, state: s.State, "description": s.Description})
		}
	}
	return newest
}

func gitHubJSON(p *fakePull) map[string]any {
	head := map[string]any{"ref": p.branch, "sha": p.commit, "label": "acme:" + p.branch, "repo": map[string]any{"id": 1}}
	if p.fork {
		head["repo"] = map[string]any{"id": 2}
	}
	labels := rollout.Mapped(p.labels, func(l string) map[string]any { return map[string]any{"name": l} })
	out := map[string]any{"number": p.number, "title": p.title, "body": p.body, "state": "open", "merged_at": nil, "labels": labels,
		"head": head, "base": map[string]any{"ref": "main", "repo": map[string]any{"id": 1}}}
	if p.body == "" {
		out["body"] = nil
	}
	if !p.isOpen() {
		out["state"] = "closed"
	}
	if p.merged {
		out["merged_at"] = "2026-01-02T03:04:05Z"
	}
	return out
}
