package forge

import (
	"context"
	"net/http"
	"net/url"

	"gitrollout.dev/gitrollout/rollout"
)

// IsProtected asks the forge whether it protects a branch, which has to exist:
// against pushes by everybody, or against those without a review. What the rules
// are, the forge tells its administrators only.
func IsProtected(ctx context.Context, o Options, config rollout.Forge, branch string) (bool, error) {
	t, err := resolve(config, o.Remote, o.Trusted)
	if err != nil {
		return false, err
	}
	f := forges[t.kind]
	c := &caller{client: newClient(), base: f.api(t.address), token: o.Token, now: o.Now}
	f.new(c, t.repository, o.Branch) // says how the token is sent
	path := "/repos/" + t.repository + "/branches/" + branch
	if t.kind == rollout.GitLab {
		path = "/projects/" + url.PathEscape(t.repository) + "/repository/branches/" + url.PathEscape(branch)
	}
	var answer struct {
		Protected bool `json:"protected"`
	}
	err = c.call(ctx, http.MethodGet, path, nil, &answer)
	return answer.Protected, err
}
