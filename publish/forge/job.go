package forge

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

var pullRef = regexp.MustCompile(`^refs/pull/([0-9]+)/`)

// PullOf returns the forge and the pull request's number from a CI job's environment.
func PullOf(env func(string) string) (rollout.Forge, int, error) {
	if iid := env("CI_MERGE_REQUEST_IID"); iid != "" {
		number, err := strconv.Atoi(iid)
		return rollout.Forge{
			Type: rollout.GitLab, URL: env("CI_SERVER_URL"), Repository: env("CI_MERGE_REQUEST_PROJECT_PATH"),
		}, number, err
	}
	m := pullRef.FindStringSubmatch(env("GITHUB_REF"))
	if m == nil {
		return rollout.Forge{}, 0, errors.New("this is not a CI job of a pull request, " +
			"which has GITHUB_REF=refs/pull/… or CI_MERGE_REQUEST_IID")
	}
	number, err := strconv.Atoi(m[1])
	return RepositoryOf(env), number, err
}

// RepositoryOf returns a CI job's repository, or the zero Forge.
func RepositoryOf(env func(string) string) rollout.Forge {
	f := rollout.Forge{
		Type: rollout.GitHub, URL: strings.TrimSuffix(env("GITHUB_SERVER_URL"), "/"), Repository: env("GITHUB_REPOSITORY"),
	}
	switch {
	case env("CI_PROJECT_PATH") != "":
		return rollout.Forge{Type: rollout.GitLab, URL: env("CI_SERVER_URL"), Repository: env("CI_PROJECT_PATH")}
	case f.Repository == "":
		return rollout.Forge{}
	case env("GITEA_ACTIONS") != "" || env("FORGEJO_ACTIONS") != "":
		f.Type = rollout.Gitea
	}
	return f
}
