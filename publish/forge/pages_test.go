package forge

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

func TestCommitPage(t *testing.T) {
	for name, c := range map[string]struct {
		config *rollout.Forge
		remote string
		want   string
	}{
		"GitHub":         {nil, "https://github.com/acme/deploy.git", "https://github.com/acme/deploy/commit/{}"},
		"GitHubBySSH":    {nil, "git@github.com:acme/deploy.git", "https://github.com/acme/deploy/commit/{}"},
		"GitLab":         {nil, "https://gitlab.com/acme/sub/deploy.git", "https://gitlab.com/acme/sub/deploy/-/commit/{}"},
		"Gitea":          {&rollout.Forge{Type: rollout.Gitea, URL: "https://git.example.com"}, "https://git.example.com/acme/deploy", "https://git.example.com/acme/deploy/commit/{}"},
		"AnotherAddress": {&rollout.Forge{Type: rollout.Gitea, URL: "https://forge.example.com"}, "https://git.example.com/acme/deploy", "https://forge.example.com/acme/deploy/commit/{}"},
		"UnknownHost":    {nil, "https://git.example.com/acme/deploy", ""},
		"LocalPath":      {nil, "/srv/git/deploy.git", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CommitPage(c.config, c.remote); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
