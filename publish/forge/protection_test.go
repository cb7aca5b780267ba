package forge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestIsProtected asks each forge in its own words.
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
			o := Options{Remote: server.URL + "/acme/deploy.git", Now: time.Now, Token: func(context.Context) (string, error) { return "token", nil }}
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

// TestIsProtectedGitea asks a real Gitea, as somebody who is no administrator,
// before and after a branch is protected.
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
