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
	name     rollout.ForgeType
	isAt     func(host string) bool      // reports whether the forge has this public host (without a port)
	api      func(address string) string // converts the web pages' address to the API's
	spacing  time.Duration
	groups   bool // allows nested groups of repositories
	header   func(token string) http.Header
	client   func(a *api, repository, base string) host
	comments func(repository string, number int) commentPaths

	// These functions return paths below the repository's page. The name is already escaped.
	commitPage, branchPage func(name string) string
	pullPage               func(base, branch string) string

	signature func(r hookRequest) (given, right bool)
	isPush    func(http.Header) bool
}

func (t table) named(name rollout.ForgeType, host string) (kind, bool) {
	return rollout.Find(t, func(k kind) bool { return k.name == name || name == "" && k.isAt(host) })
}

func (t table) names() string {
	all := rollout.Mapped(t, func(k kind) string { return string(k.name) })
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// host is a forge's API for one repository. It ignores pull requests from forks. A forge's refusal is a *call.Error.
type host interface {
	pullAPI
	announcer
	marker
	guard
}

type pullAPI interface {
	// find returns a branch's open pull request, or else the newest closed one.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	open(ctx context.Context) ([]pull, error)
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit changes the text. If closed is true, it closes the pull request.
	edit(ctx context.Context, p pull, t text, closed bool) error
}

// announcer has two methods: `ask` fails for an unknown reviewer, and `label` creates missing labels.
type announcer interface {
	ask(ctx context.Context, p pull, reviewers []string) error
	label(ctx context.Context, p pull, labels []string) error
}

type marker interface {
	// statuses returns the newest status of each name (GitHub: context).
	statuses(ctx context.Context, commit string) (map[string]status, error)
	setStatus(ctx context.Context, commit, name string, s status) error
}

type guard interface {
	isProtected(ctx context.Context, branch string) (bool, error)
	asksOwners(ctx context.Context, branch string) (bool, error)
}

type pull struct {
	number int
	text
	branch string
	commit string
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

const (
	perPage  = 50
	maxPages = 10
)
