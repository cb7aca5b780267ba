package forge

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestAddresses(t *testing.T) {
	const branch = "gitrollout/promote/prod/a b"
	elsewhere := &rollout.Forge{Type: rollout.Gitea, URL: "https://forge.example"}
	for name, c := range map[string]struct {
		config *rollout.Forge
		remote string
		want   [3]string // the URLs of a commit's, a branch's and a pull request's page
	}{
		"GitHub": {&rollout.Forge{}, "https://github.com/acme/deploy.git", [3]string{
			"https://github.com/acme/deploy/commit/9f3", "https://github.com/acme/deploy/tree/gitrollout/promote/prod/a%20b",
			"https://github.com/acme/deploy/pulls?q=is%3Aopen+head%3Agitrollout%2Fpromote%2Fprod%2Fa+b",
		}},
		"GitHub by SSH, without a configuration": {nil, "git@github.com:acme/deploy.git", [3]string{
			"https://github.com/acme/deploy/commit/9f3", "https://github.com/acme/deploy/tree/gitrollout/promote/prod/a%20b", "",
		}},
		"GitLab": {&rollout.Forge{}, "https://gitlab.com/acme/team/deploy.git", [3]string{
			"https://gitlab.com/acme/team/deploy/-/commit/9f3", "https://gitlab.com/acme/team/deploy/-/tree/gitrollout/promote/prod/a%20b",
			"https://gitlab.com/acme/team/deploy/-/merge_requests?state=opened&source_branch=gitrollout%2Fpromote%2Fprod%2Fa+b",
		}},
		"Gitea at another address": {elsewhere, "ssh://git@git.example/a/b", [3]string{
			"https://forge.example/a/b/commit/9f3", "https://forge.example/a/b/src/branch/gitrollout/promote/prod/a%20b",
			"https://forge.example/a/b/compare/main...gitrollout%2Fpromote%2Fprod%2Fa%20b",
		}},
		"a host that nothing tells of": {&rollout.Forge{}, "https://git.example/a/b", [3]string{}},
		"… without a configuration":    {nil, "https://git.example/a/b", [3]string{}},
		"a folder":                     {nil, "/srv/git/deploy.git", [3]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := PagesOf(c.config, c.remote)
			compare.Check(t, c.want, [3]string{p.Commit("9f3"), p.Branch(branch), p.Pull("main", branch)})
		})
	}
	// A template may have a placeholder instead of the commit's id. The placeholder must not be escaped.
	compare.Check(t, "https://github.com/acme/deploy/commit/{}", PagesOf(nil, "https://github.com/acme/deploy").Commit("{}"))
}
