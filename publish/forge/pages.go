package forge

import (
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages returns the URLs of a repository's pages for a browser, without requests; "" if the forge is unknown.
type Pages struct {
	home   string
	kind   kind
	opened bool // pull requests are opened
}

// PagesOf takes the configuration, maybe nil: a public host needs none, and a browser gets no token anywhere.
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

// Commit returns a commit's page.
func (p Pages) Commit(id string) string {
	if p.home == "" {
		return ""
	}
	return p.home + p.kind.commitPage(id)
}

// Branch returns the page of a branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// Slashes in the name stay.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the page for a proposal's open pull request: the forge's search, or its comparison with the base. It
// is "" without a configuration: no pull request is opened.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

// below returns a function that appends a name.
func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
