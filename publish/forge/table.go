package forge

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// table lists the supported forges, each one file, which makes a kind, and one line here.
type table []kind

var forges = table{gitHub, gitLab, gitea}

// kind describes one forge.
type kind struct {
	name    rollout.ForgeType
	isAt    func(host string) bool      // known hosts of the forge, without their port
	api     func(address string) string // its API's address, from the address in a browser
	spacing time.Duration               // between changing requests
	groups  bool                        // groups of repositories may be nested
	header  func(token string) http.Header
	client  func(a *api, repository, base string) host
	// comments returns the API paths of a pull request's comments.
	comments func(repository string, number int) commentPaths

	// Paths of pages below a repository's, by a commit's id or escaped branch names.
	commitPage, branchPage func(name string) string
	pullPage               func(base, branch string) string

	// signature reports whether a webhook has this forge's signature, and the right one. isPush reports a push.
	signature func(r hookRequest) (given, right bool)
	isPush    func(http.Header) bool
}

// named returns a type's forge, or the one known at a host.
func (t table) named(name rollout.ForgeType, host string) (kind, bool) {
	i := slices.IndexFunc(t, func(k kind) bool { return k.name == name || name == "" && k.isAt(host) })
	if i < 0 {
		return kind{}, false
	}
	return t[i], true
}

// names returns all forges' types, for a sentence.
func (t table) names() string {
	all := rollout.Mapped(t, func(k kind) string { return string(k.name) })
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// host is one forge's API for one repository, without pull requests from forks. Request errors are *call.Errors.
type host struct {
	finder
	editor
	announcer
	marker
	guard
}

type finder interface {
	// find returns a branch's open pull request, or else the newest.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	// open lists the open pull requests, of maxPages pages at most.
	open(ctx context.Context) ([]pull, error)
}

type editor interface {
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit sets title and body, and closes the pull request if closed.
	edit(ctx context.Context, p pull, t text, closed bool) error
}

// announcer handles names that the forge may not know.
type announcer interface {
	ask(ctx context.Context, p pull, reviewers []string) error
	label(ctx context.Context, p pull, labels []string) error
}

type marker interface {
	// statuses returns a commit's newest statuses, by context.
	statuses(ctx context.Context, commit string) (map[string]status, error)
	setStatus(ctx context.Context, commit, name string, s status) error
}

type guard interface {
	// isProtected needs an existing branch.
	isProtected(ctx context.Context, branch string) (bool, error)
	// asksOwners reports whether a branch requires code owners' reviews.
	asksOwners(ctx context.Context, branch string) (bool, error)
}

// pull is a pull request or merge request.
type pull struct {
	number int
	text
	branch string // the head
	commit string // the head's last commit
	isOpen bool
	merged bool
	labels []string
}

// text is a pull request's visible part.
type text struct{ title, body string }

type status struct {
	state       statusState
	description string // at most 140 characters
}

type statusState string

// The states, as GitHub and Gitea name them.
const (
	pending statusState = "pending"
	success statusState = "success"
	failure statusState = "failure"
)

// perPage and maxPages bound the reading of lists.
const (
	perPage  = 50
	maxPages = 10
)
