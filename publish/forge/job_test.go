package forge

import (
	"maps"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestPullOfAJob checks that PullOf finds the pull request in the variables of each forge's jobs. Other variables cause an error.
func TestPullOfAJob(t *testing.T) {
	gitHub := map[string]string{
		"GITHUB_REF": "refs/pull/12/merge", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/deploy",
	}
	with := func(name string) map[string]string {
		all := maps.Clone(gitHub)
		all[name] = "true"
		return all
	}
	for name, tt := range map[string]struct {
		env    map[string]string
		want   rollout.Forge
		number int
		refuse bool
	}{
		"GitHub":  {gitHub, rollout.Forge{Type: rollout.GitHub, URL: "https://github.com", Repository: "acme/deploy"}, 12, false},
		"Gitea":   {with("GITEA_ACTIONS"), rollout.Forge{Type: rollout.Gitea, URL: "https://github.com", Repository: "acme/deploy"}, 12, false},
		"Forgejo": {with("FORGEJO_ACTIONS"), rollout.Forge{Type: rollout.Gitea, URL: "https://github.com", Repository: "acme/deploy"}, 12, false},
		"GitLab": {map[string]string{
			"CI_MERGE_REQUEST_IID": "3", "CI_SERVER_URL": "https://gitlab.com", "CI_MERGE_REQUEST_PROJECT_PATH": "acme/team/deploy",
		}, rollout.Forge{Type: rollout.GitLab, URL: "https://gitlab.com", Repository: "acme/team/deploy"}, 3, false},
		"a push":   {map[string]string{"GITHUB_REF": "refs/heads/main"}, rollout.Forge{}, 0, true},
		"a laptop": {nil, rollout.Forge{}, 0, true},
	} {
		got, number, err := PullOf(func(name string) string { return tt.env[name] })
		if !got.Equal(&tt.want) || number != tt.number || (err != nil) != tt.refuse {
			t.Errorf("%s: %+v, %d, %v", name, got, number, err)
		}
	}
}

// TestForgeOfAJob checks that RepositoryOf finds the repository in the variables of each forge's jobs. Outside of jobs, RepositoryOf
// returns a zero Forge.
func TestForgeOfAJob(t *testing.T) {
	gitHub := map[string]string{"GITHUB_SERVER_URL": "https://git.example.com/", "GITHUB_REPOSITORY": "acme/deploy"}
	gitea := map[string]string{"GITEA_ACTIONS": "true", "GITHUB_SERVER_URL": "https://git.example.com", "GITHUB_REPOSITORY": "acme/deploy"}
	gitLab := map[string]string{"CI_SERVER_URL": "https://git.example.com", "CI_PROJECT_PATH": "acme/team/deploy"}
	for name, tt := range map[string]struct {
		env  map[string]string
		want rollout.Forge
	}{
		"GitHub":   {gitHub, rollout.Forge{Type: rollout.GitHub, URL: "https://git.example.com", Repository: "acme/deploy"}},
		"Gitea":    {gitea, rollout.Forge{Type: rollout.Gitea, URL: "https://git.example.com", Repository: "acme/deploy"}},
		"GitLab":   {gitLab, rollout.Forge{Type: rollout.GitLab, URL: "https://git.example.com", Repository: "acme/team/deploy"}},
		"a laptop": {map[string]string{"GITHUB_SERVER_URL": "https://git.example.com"}, rollout.Forge{}},
	} {
		if got := RepositoryOf(func(name string) string { return tt.env[name] }); !got.Equal(&tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
