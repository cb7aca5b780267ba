package forge

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		config               *rollout.Forge
		remote               string
		wantCommit, wantHead string
	}{
		{nil, "git@github.com:acme/deploy.git", "https://github.com/acme/deploy/commit/9f3", "https://github.com/acme/deploy/tree/gitrollout/promote/prod/shop"},
		{nil, "https://gitlab.com/acme/team/deploy.git", "https://gitlab.com/acme/team/deploy/-/commit/9f3", "https://gitlab.com/acme/team/deploy/-/tree/gitrollout/promote/prod/shop"},
		{&rollout.Forge{Type: rollout.Gitea, URL: "https://forge.example"}, "ssh://git@git.example/a/b", "https://forge.example/a/b/commit/9f3", "https://forge.example/a/b/src/branch/gitrollout/promote/prod/shop"},
		{nil, "/srv/git/deploy.git", "", ""},
		{nil, "https://git.example/a/b", "", ""},
	} {
		commit, branch := Links(c.config, c.remote)
		if commit == nil || branch == nil {
			if c.wantCommit != "" {
				t.Errorf("%s has no links", c.remote)
			}
			continue
		}
		if got := commit("9f3"); got != c.wantCommit {
			t.Errorf("commit %s, want %s", got, c.wantCommit)
		}
		if got := branch("gitrollout/promote/prod/shop"); got != c.wantHead {
			t.Errorf("branch %s, want %s", got, c.wantHead)
		}
	}
}
