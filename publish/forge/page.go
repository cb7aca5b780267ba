package forge

import (
	"net/url"

	"gitrollout.dev/gitrollout/rollout"
)

// Page is where a browser shows the open pull request of a proposal's branch. It
// asks nobody; "" if the configuration and the repository's URL do not tell.
//
// The addresses are those of the forges' own search: GitHub's head: qualifier,
// GitLab's source_branch parameter, and the comparison of Gitea and Forgejo, which
// links to the pull request that exists.
func Page(config *rollout.Forge, remote, base, branch string) string {
	if config == nil {
		return ""
	}
	// What is only opened in a browser gets no token, so any address may be named.
	t, err := resolve(*config, remote, config.URL)
	if err != nil {
		return ""
	}
	page := t.address + "/" + t.repository
	switch t.kind {
	case rollout.GitHub:
		return page + "/pulls?q=" + url.QueryEscape("is:open head:"+branch)
	case rollout.GitLab:
		return page + "/-/merge_requests?state=opened&source_branch=" + url.QueryEscape(branch)
	default:
		return page + "/compare/" + url.PathEscape(base) + "..." + url.PathEscape(branch)
	}
}
