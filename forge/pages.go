package forge

import "gitrollout.dev/gitrollout/rollout"

// Pages are addresses of a forge for a browser, with {} where something goes.
type Pages struct {
	Commit string // {}: the commit's id
	Branch string // {}: a proposal's branch; shows its pull requests
}

// PagesOf finds the pages of a repository. It asks nobody; a repository that is
// on no forge that is known has none. Base is the users' branch.
//
// The addresses of a branch are the forges' own searches: GitHub's head:
// qualifier, GitLab's source_branch parameter, and the comparison of Gitea and
// Forgejo, which links to the pull request that exists.
func PagesOf(config *rollout.Forge, remote, base string) Pages {
	if config == nil {
		config = &rollout.Forge{}
	}
	// No token goes to what is opened in a browser, so any address may be named.
	t, err := resolve(*config, remote, config.URL)
	if err != nil {
		return Pages{}
	}
	root := t.address + "/" + t.repository
	switch t.kind {
	case rollout.GitHub:
		return Pages{Commit: root + "/commit/{}", Branch: root + "/pulls?q=head%3A{}"}
	case rollout.GitLab:
		return Pages{Commit: root + "/-/commit/{}", Branch: root + "/-/merge_requests?scope=all&state=all&source_branch={}"}
	default:
		return Pages{Commit: root + "/commit/{}", Branch: root + "/compare/" + base + "...{}"}
	}
}
