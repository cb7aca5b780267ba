package rollout

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"time"
)

// ErrConflict is the answer to a push when a branch was not where the update expected it: nothing was changed, and
// the decision is to be made again on what is there now.
var ErrConflict = errors.New("the branch has moved")

// ErrUnreachable is the answer to a fetch or a push when there was no connection, no answer in time, or the server is
// ill: the same may do later. Whether a push has arrived is not known.
var ErrUnreachable = errors.New("unreachable")

// RetryError is the answer of a server that wants no request for a while.
type RetryError struct {
	error
	After time.Duration // 0 if the server does not say
}

// NewRetryError returns err with the pause that the server asks for.
func NewRetryError(err error, after time.Duration) error { return &RetryError{err, after} }

// Unwrap returns the error without the pause.
func (e *RetryError) Unwrap() error { return e.error }

// RetryAfter returns the pause that a server asks for with an error, 0 if it asks for none.
func RetryAfter(err error) time.Duration {
	wait := &RetryError{}
	_ = errors.As(err, &wait)
	return wait.After
}

// Heads is where the branches that matter are. An absent branch is "".
type Heads struct {
	Main      string
	State     string
	Policy    string            // of the branch that the policy is on, "" if there is no such branch
	Proposals map[string]string // short branch name, such as gitrollout/promote/prod/shop, to commit

	// Refused is set when the users' branch is at a commit that is not to be followed. Main is then the last one that was.
	Refused *Refusal
	// Keys changes when other keys are trusted to sign than before.
	Keys string
}

// Refusal is a head of the users' branch that is not followed, because nobody who may has signed it.
type Refusal struct {
	Commit string
	Reason string
	// Blind says that no head has been trusted since the process began. Heads.Main is then a commit for
	// reading the configuration only: what the apps are at says the state.
	Blind bool
}

// Update moves one branch in a push: to a new commit that is built from edits, or away.
type Update struct {
	Branch string // short name
	// Old is where the branch must be now; "" if it must not exist. Only a proposal may get a Parent that is not
	// Old, and only a proposal may be removed.
	Old    string
	Parent string // commit to build on; "" for a branch without history
	// Edits are files to write, by path; nil content deletes the file or folder. A file that exists keeps its
	// executable bit. Deletions come first: with "a": nil and "a/b": content the folder a is replaced.
	Edits   map[string][]byte
	Message string
	When    time.Time // author's and committer's time, to the second
	Author  Identity  // also the committer; the zero value is who the mirror commits as
	Delete  bool      // remove the branch instead
}

// Merge is what merging one commit into another would do: the files that it writes, by path, with nil content for those
// that it deletes. It is clean if nothing stands in its way and nothing else comes with it: it is one commit on
// top of what the other is built on, and the other still has these files as they were there.
type Merge struct {
	Edits map[string][]byte
	Clean bool
}

// Does reports whether the merge is clean and does exactly what some edits do.
func (m Merge) Does(edits map[string][]byte) bool {
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	return m.Clean && maps.EqualFunc(m.Edits, edits, same)
}

// Identity is who commits.
type Identity struct{ Name, Email string }

// OwnBranches is what the names of all branches that gitrollout pushes to begin with, but for main.
const OwnBranches = "gitrollout/"

// Trailers of the commits on the state branch, which say for programs what the message says for people.
const (
	TrailerCluster = "Gitrollout-Cluster" // name of the cluster
	TrailerEpoch   = "Gitrollout-Epoch"   // of the process that wrote it
	TrailerSource  = "Gitrollout-Source"  // commit of the users' branch
	TrailerApp     = "Gitrollout-App"     // name of the app, and where it is; one for each that the commit is about
	TrailerArchive = "Gitrollout-Archive" // commit at which the branch was started anew
)

// Trailer returns one line of a commit's trailers.
func Trailer(name, value string) string { return name + ": " + value + "\n" }

// StateBranch returns the name of a cluster's state branch, unless its configuration names another.
func StateBranch(cluster string) string { return OwnBranches + "state/" + cluster }

// ArchiveBranch returns the name of the branch that keeps what a state branch was until it was started anew.
func ArchiveBranch(cluster string, at time.Time) string {
	return OwnBranches + "archive/" + cluster + "/" + at.UTC().Format("2006-01-02T150405Z")
}

// ProposalBranch returns the name of the branch for an app's proposals.
func ProposalBranch(kind ProposalKind, cluster, app string) string {
	return OwnBranches + string(kind) + "/" + cluster + "/" + app
}

// StatusContext returns the name of an app's status, which a forge shows at a commit.
func StatusContext(cluster, app string) string { return "gitrollout/" + cluster + "/" + app }

// ProposalBranches returns what the names of a cluster's proposals begin with.
func ProposalBranches(cluster string) []string {
	return []string{ProposalBranch(ProposePromotion, cluster, ""), ProposalBranch(ProposeRevert, cluster, "")}
}

// IsProposal tells the short-lived branches, which may be forced and removed, from all others.
func IsProposal(branch string) bool {
	rest, ours := strings.CutPrefix(branch, OwnBranches)
	kind, _, below := strings.Cut(rest, "/")
	return ours && below && (ProposalKind(kind) == ProposePromotion || ProposalKind(kind) == ProposeRevert)
}
