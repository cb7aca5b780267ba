package forge

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// table lists forges. Each supported forge has one file, which defines its kind.
type table []kind

var forges = table{gitHub, gitLab, gitea}

// kind describes one forge.
type kind struct {
	name    rollout.ForgeType
	isAt    func(host string) bool      // reports whether this forge runs on a public host; the name has no port
	api     func(address string) string // returns the API's address for the forge's address in a browser
	spacing time.Duration               // minimum time between two requests that change something on the forge
	groups  bool                        // whether a repository may be in nested groups
	header  func(token string) http.Header
	client  func(a *api, repository, base string) host
	// comments returns the paths in the API for the comments of a pull request.
	comments func(repository string, number int) commentPaths

	// These functions return the path of a page, relative to the repository's page. Names of branches are already escaped.
	commitPage, branchPage func(name string) string
	pullPage               func(base, branch string) string

	// signature reports whether a webhook has a signature of this forge (given), and whether the signature is right.
	signature func(r hookRequest) (given, right bool)
	isPush    func(http.Header) bool
}

// named returns the forge with the given name. If the name is empty, it returns the forge that runs on the public host.
func (t table) named(name rollout.ForgeType, host string) (kind, bool) {
	i := slices.IndexFunc(t, func(k kind) bool { return k.name == name || name == "" && k.isAt(host) })
	if i < 0 {
		return kind{}, false
	}
	return t[i], true
}

func (t table) names() string {
	all := rollout.Mapped(t, func(k kind) string { return string(k.name) })
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// host is the API of a forge for one repository. It ignores pull requests from forks. Failed requests are *call.Errors.
type host interface {
	pullAPI
	announcer
	marker
	guard
}

// pullAPI reads and changes pull requests.
type pullAPI interface {
	// find returns the open pull request of a branch. If none is open, it returns the branch's newest pull request.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	// open returns the open pull requests, from at most maxPages pages.
	open(ctx context.Context) ([]pull, error)
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit sets the title and body. If closed is true, it also closes the pull request.
	edit(ctx context.Context, p pull, t text, closed bool) error
}

// announcer adds reviewers and labels to a pull request. The forge may refuse names that it does not know.
type announcer interface {
	ask(ctx context.Context, p pull, reviewers []string) error
	label(ctx context.Context, p pull, labels []string) error
}

type marker interface {
	// statuses returns the newest status of each name (context) on a commit.
	statuses(ctx context.Context, commit string) (map[string]status, error)
	setStatus(ctx context.Context, commit, name string, s status) error
}

type guard interface {
	// isProtected reports whether an existing branch is protected.
	isProtected(ctx context.Context, branch string) (bool, error)
	// asksOwners reports whether merges into a branch need reviews by code owners.
	asksOwners(ctx context.Context, branch string) (bool, error)
}

// pull is a pull request (on GitLab: a merge request).
type pull struct {
	number int
	text
	branch string // the head branch
	commit string // the newest commit of the head branch
	isOpen bool
	merged bool
	labels []string
}

type text struct{ title, body string }

type status struct {
	state       statusState
	description string // at most 140 characters
}

type statusState string

// GitHub and Gitea use these names for the states of a status.
const (
	pending statusState = "pending"
	success statusState = "success"
	failure statusState = "failure"
)

// perPage and maxPages limit how many items of a list are read: the items on each page, and the pages.
const (
	perPage  = 50
	maxPages = 10
)
