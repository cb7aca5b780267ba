package forge

import (
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages has the URLs of a repository's web pages. It sends no requests. If the forge is unknown, each URL is empty.
type Pages struct {
	home   string
	kind   kind
	opened bool // whether gitrollout opens pull requests
}

// PagesOf returns the pages of a repository. For a forge on a known public host, config may be nil. The host need not
// be trusted, because PagesOf sends no token.
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
	// Forges expect the slashes in a branch's name without escapes.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the URL of a page that leads to the open pull request of a proposal, such as a search. The URL is empty
// if PagesOf got no configuration, because gitrollout then opens no pull requests.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
