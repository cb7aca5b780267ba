package forge

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// table is the forges that are known. A forge is one file, which makes a kind, and one line here.
type table []kind

var forges = table{gitHub, gitLab, gitea}

// kind is what sets one forge apart from the others.
type kind struct {
	name    rollout.ForgeType
	isAt    func(host string) bool      // hosts that are known to be one, without their port
	api     func(address string) string // its API's address, from the one in a browser
	spacing time.Duration               // between requests that change something
	groups  bool                        // a repository may be in a group within another
	header  func(token string) http.Header
	client  func(a *api, repository, base string) host
	// comments are a pull request's.
	comments func(repository string, number int) commentPaths

	// Addresses of pages below a repository's, with a commit's id, or with escaped names of branches.
	commitPage, branchPage func(name string) string
	pullPage               func(base, branch string) string

	// signature tells whether a webhook's request has this forge's signature, and
	// whether it is right. isPush tells a push from other events.
	signature func(r hookRequest) (given, right bool)
	isPush    func(http.Header) bool
}

// named returns the forge of a type, or the one that is known to be at a host.
func (t table) named(name rollout.ForgeType, host string) (kind, bool) {
	i := slices.IndexFunc(t, func(k kind) bool { return k.name == name || name == "" && k.isAt(host) })
	if i < 0 {
		return kind{}, false
	}
	return t[i], true
}

// names are the types of all forges, as a sentence lists them.
func (t table) names() string {
	all := rollout.Mapped(t, func(k kind) string { return string(k.name) })
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// host is one forge's API, for one repository. Pull requests from forks are none
// of its business. Errors of requests are *call.Errors.
type host struct {
	finder
	editor
	announcer
	marker
	guard
}

type finder interface {
	// find returns the open pull request of a branch, or else its newest one.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	// open lists all open pull requests, those of maxPages pages at most.
	open(ctx context.Context) ([]pull, error)
}

type editor interface {
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit sets title and body, and closes it if asked to.
	edit(ctx context.Context, p pull, t text, closed bool) error
}

// announcer may meet names that the forge does not know.
type announcer interface {
	ask(ctx context.Context, p pull, reviewers []string) error
	label(ctx context.Context, p pull, labels []string) error
}

type marker interface {
	// statuses are the newest ones of a commit, by context.
	statuses(ctx context.Context, commit string) (map[string]status, error)
	setStatus(ctx context.Context, commit, name string, s status) error
}

type guard interface {
	// isProtected is about a branch that exists.
	isProtected(ctx context.Context, branch string) (bool, error)
	// asksOwners is whether a branch waits for the reviews of code owners.
	asksOwners(ctx context.Context, branch string) (bool, error)
}

// pull is a pull request or merge request.
type pull struct {
	number int
	text
	branch string // its head
	commit string // where the head was last
	isOpen bool
	merged bool
	labels []string
}

// text is what people read of a pull request.
type text struct{ title, body string }

// status is a commit's status.
type status struct {
	state       statusState
	description string // at most 140 characters
}

type statusState string

// The states, by GitHub's and Gitea's names.
const (
	pending statusState = "pending"
	success statusState = "success"
	failure statusState = "failure"
)

// perPage and maxPages bound how far back lists are read.
const (
	perPage  = 50
	maxPages = 10
)
