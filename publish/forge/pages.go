package forge

import (
	"cmp"
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages has the URLs of a repository's web pages, all "" for an unknown forge.
type Pages struct {
	home   string
	kind   kind
	opened bool
}

// PagesOf returns a repository's pages. config may be nil for a known public host. The host need not be trusted,
// because no token is sent.
func PagesOf(config *rollout.Forge, remote string) Pages { return forges.pages(config, remote) }

func (t table) pages(config *rollout.Forge, remote string) Pages {
	c := *cmp.Or(config, &rollout.Forge{})
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

// Branch returns the URL of a branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// Forges expect slashes without escapes.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the URL of a page, such as a search, that leads to a proposal's open pull request, or "" without a
// configuration.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
