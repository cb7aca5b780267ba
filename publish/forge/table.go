package forge

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// table lists forges. Each forge has a file, which defines its kind.
type table []kind

var forges = table{gitHub, gitLab, gitea}

// kind describes one forge.
type kind struct {
	name    rollout.ForgeType
	isAt    func(host string) bool      // reports whether a public host (without a port) has this forge
	api     func(address string) string // returns the API's address for the forge's address in browsers
	spacing time.Duration               // minimum time between two requests that change data on the forge
	groups  bool                        // repositories may be in nested groups
	header  func(token string) http.Header
	client  func(a *api, repository, base string) host
	// comments returns the API's paths for a pull request's comments.
	comments func(repository string, number int) commentPaths

	// These functions return a page's path, relative to the repository's page. The names of branches are already escaped.
	commitPage, branchPage func(name string) string
	pullPage               func(base, branch string) string

	// signature reports whether a webhook has this forge's signature (given), and whether the signature is right.
	signature func(r hookRequest) (given, right bool)
	isPush    func(http.Header) bool
}

// named returns the forge with the given name. If the name is "", it returns the forge on the public host.
func (t table) named(name rollout.ForgeType, host string) (kind, bool) {
	return rollout.Find(t, func(k kind) bool { return k.name == name || name == "" && k.isAt(host) })
}

func (t table) names() string {
	all := rollout.Mapped(t, func(k kind) string { return string(k.name) })
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// host is a forge's API for one repository. It ignores pull requests from forks. Failed requests give *call.Errors.
type host interface {
	pullAPI
	announcer
	marker
	guard
}

// pullAPI reads and changes pull requests.
type pullAPI interface {
	// find returns a branch's open pull request. If none is open, it returns the branch's newest pull request.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	// open returns the open pull requests, from at most maxPages pages.
	open(ctx context.Context) ([]pull, error)
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit sets the title and body. If closed is true, it also closes the pull request.
	edit(ctx context.Context, p pull, t text, closed bool) error
}

// announcer adds reviewers and labels to a pull request. The forge may refuse unknown names.
type announcer interface {
	ask(ctx context.Context, p pull, reviewers []string) error
	label(ctx context.Context, p pull, labels []string) error
}

type marker interface {
	// statuses returns a commit's newest status for each name (context).
	statuses(ctx context.Context, commit string) (map[string]status, error)
	setStatus(ctx context.Context, commit, name string, s status) error
}

type guard interface {
	// isProtected reports whether an existing branch is protected.
	isProtected(ctx context.Context, branch string) (bool, error)
	// asksOwners reports whether a merge into a branch needs a review by the code owners.
	asksOwners(ctx context.Context, branch string) (bool, error)
}

// pull is a pull request or, on GitLab, a merge request.
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

// The names of a status's states on GitHub and Gitea.
const (
	pending statusState = "pending"
	success statusState = "success"
	failure statusState = "failure"
)

// perPage and maxPages limit the items that are read from a list: the items per page, and the pages.
const (
	perPage  = 50
	maxPages = 10
)
