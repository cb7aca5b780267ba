package forge

import (
	"context"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// host is one forge's API, for one repository. Pull requests from forks are
// none of its business. Errors of requests are *requestErrors.
type host interface {
	// find returns the open pull request of a branch, or else its newest one.
	find(ctx context.Context, branch string) (p pull, found bool, err error)
	// open lists all open pull requests, those of maxPages pages at most.
	open(ctx context.Context) ([]pull, error)
	create(ctx context.Context, branch string, t text) (pull, error)
	// edit sets title and body, and closes it if asked to.
	edit(ctx context.Context, p pull, t text, closed bool) error
	// ask requests reviews, label adds labels. Both may meet names that the
	// forge does not know.
	ask(ctx context.Context, p pull, reviewers []string) error
	label(ctx context.Context, p pull, labels []string) error
	// statuses are the newest ones of a commit, by context.
	statuses(ctx context.Context, commit string) (map[string]status, error)
	setStatus(ctx context.Context, commit, name string, s status) error
}

// forges is the table of forges: how to reach each one's API, and which hosts
// are known to be one.
var forges = map[rollout.ForgeType]struct {
	new     func(c *caller, repository, base string) host
	api     func(address string) string // from the address in a browser
	spacing time.Duration               // between writes; GitHub asks for a second
	hosts   []string
}{
	rollout.GitHub: {newGitHub, gitHubAPI, time.Second, []string{"github.com"}},
	rollout.GitLab: {newGitLab, func(address string) string { return address + "/api/v4" }, 0, []string{"gitlab.com"}},
	rollout.Gitea:  {newGitea, func(address string) string { return address + "/api/v1" }, 0, []string{"gitea.com", "codeberg.org"}},
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
