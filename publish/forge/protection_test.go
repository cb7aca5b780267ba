package forge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

func optionsOf(server *httptest.Server) Options {
	return Options{Remote: server.URL + "/acme/deploy.git", Now: time.Now, Token: tokenOf("token")}
}

// TestIsProtected checks that IsProtected understands each forge's response.
func TestIsProtected(t *testing.T) {
	paths := map[rollout.ForgeType]string{
		rollout.GitHub: "/api/v3/repos/acme/deploy/branches/gitrollout/state/prod",
		rollout.Gitea:  "/api/v1/repos/acme/deploy/branches/gitrollout/state/prod",
		rollout.GitLab: "/api/v4/projects/acme%2Fdeploy/repository/branches/gitrollout%2Fstate%2Fprod",
	}
	for kind, path := range paths {
		t.Run(string(kind), func(t *testing.T) {
			answer := `{"name": "gitrollout/state/prod", "protected": true}`
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.EscapedPath() != path || answer == "" {
					http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
					return
				}
				_, _ = w.Write([]byte(answer))
			}))
			defer server.Close()
			o := optionsOf(server)
			ask := func() (bool, error) {
				return IsProtected(t.Context(), o, rollout.Forge{Type: kind}, "gitrollout/state/prod")
			}
			if protected, err := ask(); err != nil || !protected {
				t.Errorf("protected %t, %v", protected, err)
			}
			answer = `{"protected": false}`
			if protected, err := ask(); err != nil || protected {
				t.Errorf("not protected, and it says %t, %v", protected, err)
			}
			answer = ""
			if _, err := ask(); err == nil {
				t.Error("a branch that does not exist is neither")
			}
		})
	}
}

// TestAsksOwners checks AsksOwners for GitHub and GitLab, with administrators and with other users.
func TestAsksOwners(t *testing.T) {
	const gitHub, gitLab = "/api/v3/repos/acme/deploy", "/api/v4/projects/acme%2Fdeploy"
	const yes, no, unknown = "yes", "no", "unknown"
	ruleset := func(asks string) string {
		return `[{"type": "deletion"}, {"type": "pull_request", "parameters": {"require_code_owner_review": ` + asks + `}}]`
	}
	for name, tc := range map[string]struct {
		kind    rollout.ForgeType
		answers map[string]string // by path; answers that begin with 403 or 404 are errors
		want    string
		words   string
	}{
		"a ruleset asks": {rollout.GitHub, map[string]string{gitHub + "/rules/branches/main": ruleset("true")}, yes, ""},
		"branch protection asks": {rollout.GitHub, map[string]string{
			gitHub + "/rules/branches/main":      ruleset("false"),
			gitHub + "/branches/main/protection": `{"required_pull_request_reviews": {"require_code_owner_reviews": true}}`,
		}, yes, ""},
		"branch protection does not": {rollout.GitHub, map[string]string{
			gitHub + "/rules/branches/main":      `[]`,
			gitHub + "/branches/main/protection": `{"required_pull_request_reviews": {"require_code_owner_reviews": false}}`,
		}, no, ""},
		"a ruleset alone, and an administrator": {rollout.GitHub, map[string]string{
			gitHub + "/rules/branches/main":      ruleset("false"),
			gitHub + "/branches/main/protection": "404 Branch not protected",
		}, no, ""},
		"protected, and no administrator": {rollout.GitHub, map[string]string{
			gitHub + "/rules/branches/main":      `[]`,
			gitHub + "/branches/main/protection": "403 Resource not accessible by personal access token",
			gitHub + "/branches/main":            `{"protected": true}`,
		}, unknown, "GITROLLOUT_FORGE_TOKEN"},
		"not protected, and no administrator": {rollout.GitHub, map[string]string{
			gitHub + "/rules/branches/main":      `[]`,
			gitHub + "/branches/main/protection": "404 Not Found",
			gitHub + "/branches/main":            `{"protected": false}`,
		}, no, ""},
		"GitHub does not say": {rollout.GitHub, map[string]string{gitHub + "/rules/branches/main": "403 no"}, unknown, "no"},
		"the branch's pattern asks": {rollout.GitLab, map[string]string{gitLab + "/protected_branches": `[` +
			`{"name": "release/*", "code_owner_approval_required": true}, {"name": "main", "code_owner_approval_required": true}]`}, yes, ""},
		"a wildcard asks": {rollout.GitLab, map[string]string{gitLab + "/protected_branches": `[` +
			`{"name": "main", "code_owner_approval_required": false}, {"name": "m*n", "code_owner_approval_required": true}]`}, yes, ""},
		"another branch's pattern asks": {rollout.GitLab, map[string]string{gitLab + "/protected_branches": `[` +
			`{"name": "mai", "code_owner_approval_required": true}, {"name": "main"}]`}, no, ""},
		"GitLab does not say": {rollout.GitLab, map[string]string{gitLab + "/protected_branches": "403 Forbidden"}, unknown, "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer, known := tc.answers[r.URL.EscapedPath()]
				if !known {
					t.Errorf("asked %s", r.URL)
				}
				switch {
				case strings.HasPrefix(answer, "403 "):
					w.WriteHeader(http.StatusForbidden)
				case strings.HasPrefix(answer, "404 "):
					w.WriteHeader(http.StatusNotFound)
				}
				if _, message, failed := strings.Cut(answer, "40"); failed && message[1] == ' ' {
					answer = `{"message": "` + message[2:] + `"}`
				}
				_, _ = w.Write([]byte(answer))
			}))
			defer server.Close()
			o := optionsOf(server)
			asks, err := AsksOwners(t.Context(), o, rollout.Forge{Type: tc.kind}, "main")
			got := map[bool]string{true: yes, false: no}[asks]
			if err != nil {
				got = unknown
			}
			if got != tc.want || tc.words != "" && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s, want %s: %v", got, tc.want, err)
			}
		})
	}
}

// TestAsksOwnersGitea checks AsksOwners with a real Gitea server, for an administrator and for another user.
func TestAsksOwnersGitea(t *testing.T) {
	bench, o, config := newGiteaMaker(t)(t)
	g := bench.(*giteaBench)
	o.Now = time.Now
	asOwner := o
	asOwner.Token = tokenOf(g.owner.Token)
	asks := func(when string, o Options, want bool) {
		t.Helper()
		if got, err := AsksOwners(t.Context(), o, config, "main"); err != nil || got != want {
			t.Errorf("%s it asks: %t, %v", when, got, err)
		}
	}
	asks("before it is protected", o, false)
	rule := "/repos/" + g.repo + "/branch_protections"
	g.server.Must(g.owner, http.MethodPost, rule, map[string]any{"rule_name": "mai*", "required_approvals": 1}, nil)
	asks("while any approval does", asOwner, false)
	g.server.Must(g.owner, http.MethodPatch, rule+"/mai*", map[string]any{"block_on_official_review_requests": true}, nil)
	asks("while it waits for code owners", asOwner, true)
	if _, err := AsksOwners(t.Context(), o, config, "main"); !errors.Is(err, errHidden) {
		t.Errorf("told to a user without administrator rights: %v", err)
	}
	o.Token = tokenOf("")
	if _, err := AsksOwners(t.Context(), o, config, "main"); !errors.Is(err, errNoToken) {
		t.Errorf("without a token: %v", err)
	}
}

// TestIsProtectedGitea checks IsProtected on a real Gitea server, without administrator rights, before and after a branch is protected.
func TestIsProtectedGitea(t *testing.T) {
	bench, o, config := newGiteaMaker(t)(t)
	g := bench.(*giteaBench)
	o.Now = time.Now
	if protected, err := IsProtected(t.Context(), o, config, "main"); err != nil || protected {
		t.Fatalf("not protected yet, and it says %t, %v", protected, err)
	}
	g.server.Must(g.owner, http.MethodPost, "/repos/"+g.repo+"/branch_protections", map[string]any{"rule_name": "main"}, nil)
	if protected, err := IsProtected(t.Context(), o, config, "main"); err != nil || !protected {
		t.Errorf("protected, and it says %t, %v", protected, err)
	}
}
