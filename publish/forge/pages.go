package forge

import (
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages makes addresses of one repository's pages, as in a browser. It asks nobody. All of them are "" where the
// configuration and the remote do not tell which forge it is.
type Pages struct {
	home   string
	kind   kind
	opened bool // pull requests are
}

// PagesOf takes the configuration, which may be nil: a forge's own host tells without one. No token goes to what is
// opened in a browser, so the configuration may name any address.
func PagesOf(config *rollout.Forge, remote string) Pages { return forges.pages(config, remote) }

func (t table) pages(config *rollout.Forge, remote string) Pages {
	c := rollout.Forge{}
	if config != nil {
		c = *config
	}
	target, err := t.resolve(c, remote, c.URL)
	if err != nil {
		return Pages{}
	}
	return Pages{home: target.address + "/" + target.repository, kind: target.kind, opened: config != nil}
}

// Commit is a commit's page.
func (p Pages) Commit(id string) string {
	if p.home == "" {
		return ""
	}
	return p.home + p.kind.commitPage(id)
}

// Branch is the page of a branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// Slashes in it stay.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull is where the open pull request of a proposal's branch is found: the forge's own search for it, or its comparison
// with the branch that it is for. "" without a configuration, with which no pull request is opened.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

// below makes a page's address of what it begins with.
func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
