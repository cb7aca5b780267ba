package forge

import "gitrollout.dev/gitrollout/rollout"

// CommitPage is where a browser shows a commit, with {} where its id goes. It asks
// nobody; "" if the repository is on no forge that is known. A forge's own host
// tells even without a configuration.
func CommitPage(config *rollout.Forge, remote string) string {
	if config == nil {
		config = &rollout.Forge{}
	}
	// No token goes to what is opened in a browser, so any address may be named.
	t, err := resolve(*config, remote, config.URL)
	if err != nil {
		return ""
	}
	page := t.address + "/" + t.repository
	if t.kind == rollout.GitLab {
		page += "/-"
	}
	return page + "/commit/{}"
}
