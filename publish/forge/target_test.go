package forge

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestResolve(t *testing.T) {
	type config = rollout.Forge
	const elsewhere = " differs from the server of the Git repository (https://git.acme.example/a/b), which the token is for; " +
		"to send the token to this address, set GITROLLOUT_FORGE_URL="
	for _, tt := range []struct {
		name    string
		config  config
		remote  string
		trusted string
		want    string // the type, the API's address and the repository; or the error
	}{
		{"github", config{}, "https://github.com/acme/deploy.git", "", "github https://api.github.com acme/deploy"},
		{"github by ssh", config{}, "git@github.com:acme/deploy.git", "", "github https://api.github.com acme/deploy"},
		{"github by ssh on 443", config{}, "ssh://git@ssh.github.com:443/acme/deploy.git", "", "github https://api.github.com acme/deploy"},
		{"a hosted tenant of github", config{}, "https://acme.ghe.com/acme/deploy", "", "github https://api.acme.ghe.com acme/deploy"},
		{"an Enterprise Server", config{Type: "github"}, "https://git.acme.example/acme/deploy", "",
			"github https://git.acme.example/api/v3 acme/deploy"},
		{"gitlab with groups", config{}, "https://gitlab.com/acme/team/deploy.git", "", "gitlab https://gitlab.com/api/v4 acme/team/deploy"},
		{"gitlab below a path", config{Type: "gitlab", URL: "https://acme.example/gitlab"}, "https://acme.example/gitlab/a/b/c.git", "",
			"gitlab https://acme.example/gitlab/api/v4 a/b/c"},
		{"codeberg", config{}, "ssh://git@codeberg.org/acme/deploy.git", "", "gitea https://codeberg.org/api/v1 acme/deploy"},
		{"gitea by ssh with a port", config{Type: "gitea"}, "ssh://git@git.acme.example:2222/acme/deploy.git", "",
			"gitea https://git.acme.example/api/v1 acme/deploy"},
		{"gitea with another port for the web", config{Type: "gitea", URL: "https://git.acme.example:3000"},
			"git@git.acme.example:acme/deploy.git", "", "gitea https://git.acme.example:3000/api/v1 acme/deploy"},
		{"loopback", config{Type: "gitea"}, "http://127.0.0.1:3000/acme/deploy.git", "", "gitea http://127.0.0.1:3000/api/v1 acme/deploy"},
		{"another repository", config{Repository: "acme/manifests"}, "https://github.com/acme/deploy", "",
			"github https://api.github.com acme/manifests"},
		{"trusted", config{Type: "gitea", URL: "https://forge.acme.example", Repository: "a/b"}, "https://git.acme.example/x",
			"https://forge.acme.example/", "gitea https://forge.acme.example/api/v1 a/b"},

		{"no type", config{}, "https://git.acme.example/a/b", "",
			"forge.type: is missing, but git.acme.example is not a known forge; write github, gitlab or gitea"},
		{"another host", config{Type: "gitea", URL: "https://evil.example"}, "https://git.acme.example/a/b", "",
			"forge.url: https://evil.example" + elsewhere + "https://evil.example"},
		{"another port", config{Type: "gitea", URL: "https://git.acme.example:8443"}, "https://git.acme.example/a/b", "",
			"forge.url: https://git.acme.example:8443" + elsewhere + "https://git.acme.example:8443"},
		{"less safe", config{Type: "gitea", URL: "http://git.acme.example"}, "https://git.acme.example/a/b", "",
			"forge.url: http://git.acme.example" + elsewhere + "http://git.acme.example"},
		{"plain http", config{Type: "gitea"}, "http://git.acme.example/a/b", "",
			"forge.url: refusing to send a token over plain http to git.acme.example; use https"},
		{"a local path", config{}, "/srv/git/deploy.git", "",
			"forge.url: is missing, and /srv/git/deploy.git does not name the forge's host; write the forge's address: https://git.example.com"},
		{"a short path", config{}, "https://github.com/deploy", "", `forge.repository: "deploy" is not a repository's path; write owner/name`},
		{"a long path", config{}, "https://github.com/a/b/c", "", `forge.repository: "a/b/c" is not a repository's path; write owner/name`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, err := forges.resolve(tt.config, tt.remote, tt.trusted)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = fmt.Sprintf("%s %s %s", target.kind.name, target.kind.api(target.address), target.repository)
			}
			compare.Check(t, tt.want, got)
		})
	}
}
