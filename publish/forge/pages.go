package forge

import (
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages returns the URLs of a repository's pages in a browser, without requests. They are "" if the forge is unknown.
type Pages struct {
	home   string
	kind   kind
	opened bool // the worker opens pull requests
}

// PagesOf returns a repository's pages. config may be nil for a public host. Browsers get no token: any host is safe.
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

// Commit returns the URL of a commit's page.
func (p Pages) Commit(id string) string {
	if p.home == "" {
		return ""
	}
	return p.home + p.kind.commitPage(id)
}

// Branch returns the URL of the page with a branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// Forges expect the slashes in a branch's name unescaped.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the URL of a page that leads to the proposal's open pull request: the forge's search, or a comparison
// with the base. Without a configuration it is "", because no pull request is opened.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

// below returns a function that appends a name to prefix.
func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
