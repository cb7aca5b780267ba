package forge

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type table []kind

var forges = table{gitHub, gitLab, gitea}

type kind struct {
	name    rollout.ForgeType
	isAt    func(host string) bool      // reports whether a public host (without a port) has this forge
	api     func(address string) string // returns the API's address for the forge's address in browsers
	spacing time.Duration               // minimum time between two requests that change data on the forge
	groups  bool                        // repositories may be in nested groups
	header  func(token string) http.Header
	client  func(a *api, repository, base string) host
	// comments returns the API's paths for comments.
	comments func(repository string, number int) commentPaths

	// These functions return paths relative to the repository's page. Branch names are already escaped.
	commitPage, branchPage func(name string) string
	pullPage               func(base, branch string) string

	// signature reports whether a webhook has this forge's signature (given), and whether it is right.
	signature func(r hookRequest) (given, right bool)
	isPush    func(http.Header) bool
}

// named returns the forge with the given name. For "", the public host determines the forge.
func (t table) named(name rollout.ForgeType, host string) (kind, bool) {
	return rollout.Find(t, func(k kind) bool { return k.name == name || name == "" && k.isAt(host) })
}

func (t table) names() string {
	all := rollout.Mapped(t, func(k kind) string { return string(k.name) })
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// host is a forge's API for one repository. Pull requests from forks are ignored. Errors are *call.Errors.
type host interface {
	pullAPI
	announcer
	marker
	guard
}

type pullAPI interface {
	// find returns a branch's open pull request, or else the newest.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	// open reads at most maxPages pages.
	open(ctx context.Context) ([]pull, error)
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit sets the title and body. If closed is true, it also closes the pull request.
	edit(ctx context.Context, p pull, t text, closed bool) error
}

// announcer adds reviewers and labels. The forge may refuse unknown names.
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
	isProtected(ctx context.Context, branch string) (bool, error)
	// asksOwners reports whether merges need a code owners' review.
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

const (
	pending statusState = "pending"
	success statusState = "success"
	failure statusState = "failure"
)

// perPage and maxPages limit the items read from a list.
const (
	perPage  = 50
	maxPages = 10
)
