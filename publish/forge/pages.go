package forge

import (
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages returns the URLs of a repository's web pages. It sends no requests. A URL is empty if the forge is unknown.
type Pages struct {
	home   string
	kind   kind
	opened bool // whether gitrollout opens pull requests
}

// PagesOf returns a repository's pages. The parameter config may be nil for a public host. The host need not be
// trusted, because no token is sent to it.
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

// Branch returns the URL of a page with the branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// Forges expect unescaped slashes in a branch's name.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the URL of a page that leads to a proposal's open pull request, such as a search. The URL is empty if
// PagesOf got no configuration, because gitrollout opens no pull requests in this case.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
