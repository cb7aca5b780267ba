package forge

import (
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Links returns what makes addresses of commits and of branches, as in a browser.
// Both are nil where the configuration and the remote do not tell which forge it is.
func Links(config *rollout.Forge, remote string) (commit, branch func(string) string) {
	if config == nil {
		config = &rollout.Forge{}
	}
	t, err := resolve(*config, remote, config.URL) // no token goes anywhere
	if err != nil {
		return nil, nil
	}
	base := t.address + "/" + t.repository
	commits, branches := "/commit/", "/tree/"
	switch t.kind {
	case rollout.GitLab:
		commits, branches = "/-/commit/", "/-/tree/"
	case rollout.Gitea:
		branches = "/src/branch/"
	}
	return func(id string) string { return base + commits + id },
		func(name string) string { return base + branches + escapePath(name) }
}

// escapePath escapes a branch's name but for its slashes.
func escapePath(name string) string {
	return strings.ReplaceAll(url.PathEscape(name), "%2F", "/")
}
