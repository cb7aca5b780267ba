package forge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// gitLab is version 4 of GitLab's REST API.
var gitLab = kind{
	name:   rollout.GitLab,
	isAt:   func(host string) bool { return host == "gitlab.com" },
	api:    func(address string) string { return address + "/api/v4" },
	groups: true,
	header: func(token string) http.Header { return http.Header{"Private-Token": {token}} },
	client: func(a *api, path, base string) host {
		return &gitLabProject{a, "/projects/" + url.PathEscape(path), base}
	},
	comments: func(project string, number int) commentPaths {
		notes := fmt.Sprintf("/projects/%s/merge_requests/%d/notes", url.PathEscape(project), number)
		return commentPaths{list: notes, one: strings.ReplaceAll(notes, "%", "%%") + "/%d", edit: http.MethodPut}
	},
	commitPage: below("/-/commit/"),
	branchPage: below("/-/tree/"),
	pullPage: func(_, branch string) string {
		return "/-/merge_requests?state=opened&source_branch=" + url.QueryEscape(branch)
	},
	signature: gitLabSignature,
	isPush:    func(h http.Header) bool { return h.Get("X-Gitlab-Event") == "Push Hook" },
}

type gitLabProject struct {
	*api
	path string // /projects/group%2Fname
	base string
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

func (m gitLabMerge) foreign() bool { return m.SourceProject != m.TargetProject }

func (m gitLabMerge) pull() pull {
	return pull{
		number: m.IID, text: text{m.Title, m.Description}, branch: m.SourceBranch, commit: m.SHA,
		isOpen: m.State == "opened", merged: m.State == "merged" || m.State == "locked", labels: m.Labels,
	}
}

func (g *gitLabProject) find(ctx context.Context, branch string) (pull, bool, error) {
	for _, state := range []string{"opened", "all"} {
		query := url.Values{
			"source_branch": {branch}, "state": {state}, "order_by": {"created_at"}, "sort": {"desc"},
			"per_page": {fmt.Sprint(perPage)},
		}
		var merges []gitLabMerge
		if err := g.call(ctx, http.MethodGet, g.path+"/merge_requests?"+query.Encode(), nil, &merges); err != nil {
			return pull{}, false, err
		}
		if own := slices.DeleteFunc(merges, gitLabMerge.foreign); len(own) > 0 {
			return own[0].pull(), true, nil
		}
	}
	return pull{}, false, nil
}

func (g *gitLabProject) open(ctx context.Context) ([]pull, error) {
	merges, err := pages[gitLabMerge](ctx, g.api, g.path+"/merge_requests", "state=opened")
	return rollout.Mapped(slices.DeleteFunc(merges, gitLabMerge.foreign), gitLabMerge.pull), err
}

func (g *gitLabProject) create(ctx context.Context, branch string, t text) (pull, error) {
	var made gitLabMerge
	err := g.call(ctx, http.MethodPost, g.path+"/merge_requests",
		map[string]any{"source_branch": branch, "target_branch": g.base, "title": t.title, "description": t.body}, &made)
	return made.pull(), err
}

func (g *gitLabProject) edit(ctx context.Context, p pull, t text, closed bool) error {
	change := map[string]any{"title": t.title, "description": t.body}
	if closed {
		change["state_event"] = "close"
	}
	return g.put(ctx, p, change)
}

// ask implements announcer. GitLab needs user ids. A team cannot be a reviewer.
func (g *gitLabProject) ask(ctx context.Context, p pull, reviewers []string) error {
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
		if err := g.put(ctx, p, map[string]any{"reviewer_ids": ids}); err != nil {
			return err
		}
	}
	if len(unknown) > 0 {
		return &call.Error{
			What: "GET /users", Status: http.StatusUnprocessableEntity, Message: "no such user: " + strings.Join(unknown, ", "),
		}
	}
	return nil
}

// label implements announcer. GitLab creates missing labels.
func (g *gitLabProject) label(ctx context.Context, p pull, labels []string) error {
	return g.put(ctx, p, map[string]any{"add_labels": strings.Join(labels, ",")})
}

func (g *gitLabProject) put(ctx context.Context, p pull, change map[string]any) error {
	return g.call(ctx, http.MethodPut, fmt.Sprintf("%s/merge_requests/%d", g.path, p.number), change, nil)
}

var gitLabStates = map[statusState]string{pending: "running", success: "success", failure: "failed"}

// statuses implements marker. The request omits all=true, so GitLab returns only the newest status of each name.
func (g *gitLabProject) statuses(ctx context.Context, commit string) (map[string]status, error) {
	type named struct {
		Name        string `json:"name"`
		Status      string `json:"status"`
		Description string `json:"description"`
	}
	listed, err := pages[named](ctx, g.api, g.path+"/repository/commits/"+commit+"/statuses", "")
	found := map[string]status{}
	for _, s := range listed {
		for ours, theirs := range gitLabStates {
			if theirs == s.Status {
				found[s.Name] = status{state: ours, description: s.Description}
			}
		}
	}
	return found, err
}

// setStatus implements marker. Older GitLab versions return an error if only the description changes. setStatus ignores
// this error.
func (g *gitLabProject) setStatus(ctx context.Context, commit, name string, s status) error {
	err := g.call(ctx, http.MethodPost, g.path+"/statuses/"+commit,
		map[string]any{"state": gitLabStates[s.state], "name": name, "description": s.description, "ref": g.base}, nil)
	if refused := new(call.Error); errors.As(err, &refused) && refused.Status == http.StatusBadRequest &&
		strings.Contains(refused.Message, "Cannot transition status") {
		return nil
	}
	return err
}

func (g *gitLabProject) isProtected(ctx context.Context, branch string) (bool, error) {
	return g.protected(ctx, g.path+"/repository/branches/"+url.PathEscape(branch))
}

const maxHookAge = 5 * time.Minute

// gitLabSignature verifies the signature of a webhook. Older versions of GitLab send the secret itself instead.
func gitLabSignature(r hookRequest) (given, right bool) {
	if text := r.header.Get("Webhook-Signature"); text != "" {
		return true, standardSignature(r, text)
	}
	token := r.header.Get("X-Gitlab-Token")
	sum, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(r.secret))
	return token != "", subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

func standardSignature(r hookRequest, signatures string) bool {
	stamp := r.header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if age := r.now.Sub(time.Unix(seconds, 0)); err != nil || age > maxHookAge || age < -maxHookAge {
		return false
	}
	want := mac(signingKey(r.secret), []byte(r.header.Get("Webhook-Id")+"."+stamp+"."+string(r.body)))
	return slices.ContainsFunc(strings.Fields(signatures), func(s string) bool {
		text, ok := strings.CutPrefix(s, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		return ok && err == nil && hmac.Equal(given, want)
	})
}

func signingKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}
