package forge

import (
	"cmp"
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Pages has the URLs of a repository's web pages. It sends no requests. For an unknown forge, each URL is "".
type Pages struct {
	home   string
	kind   kind
	opened bool // gitrollout opens pull requests
}

// PagesOf returns the pages of a repository. config may be nil if the forge runs on a known public host. The host need
// not be trusted, because PagesOf does not send the token.
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

// Branch returns the URL of the page with a branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// In a branch's name, forges expect slashes without escapes.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the URL of a page that leads to a proposal's open pull request, such as a search. If PagesOf got no
// configuration, the URL is "", because gitrollout opens no pull requests then.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}
