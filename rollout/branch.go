package rollout

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"time"
)

// ErrConflict means that a branch was not at the commit that an atomic push expected. Nothing has changed.
var ErrConflict = errors.New("the branch has moved")

// ErrUnreachable means that a fetch or push failed at the connection or server, or was too late. A retry may succeed.
// The server may have accepted a push.
var ErrUnreachable = errors.New("unreachable")

// ErrOverwritten means that another writer repeatedly changes an applied object.
var ErrOverwritten = errors.New("overwritten again and again")

// ErrUnlabelled means that the API server refuses the metadata of pods by role. It stops no release.
var ErrUnlabelled = errors.New("cannot set labels and annotations of pods")

// retryError is a server's error with a pause before the next request.
type retryError struct {
	error
	After time.Duration // 0 if the server gives no time
}

// NewRetryError returns err with the pause that the server requests.
func NewRetryError(err error, after time.Duration) error { return &retryError{err, after} }

// Unwrap returns the error without the pause.
func (e *retryError) Unwrap() error { return e.error }

// RetryAfter returns the pause that an error requests, or 0.
func RetryAfter(err error) time.Duration {
	wait := &retryError{}
	_ = errors.As(err, &wait)
	return wait.After
}

// Heads has the newest commit of each branch, or "" for an absent branch.
type Heads struct {
	Main      string
	State     string
	Policy    string            // the newest commit of the branch for the policy; "" without such a branch
	Proposals map[string]string // commits by short branch name, such as gitrollout/promote/prod/shop

	// Refused is set if the newest commit on the users' branch is not trusted. Main is then an older, trusted commit.
	Refused *Refusal
	// Keys identifies the set of trusted signing keys, so that callers notice when the keys change.
	Keys string
}

// Refusal is the newest commit on the users' branch, ignored because no trusted key has signed it.
type Refusal struct {
	Commit string
	Reason string
	// Blind means that no head was trusted since the process started. Heads.Main is then used only for configuration.
	Blind bool
}

// Update is the change of one branch in a push: a commit with edits, or a removal.
type Update struct {
	Branch string // short name
	// Old is the expected head, "" for a new branch. Only proposals may be deleted, or have another Parent than Old.
	Old    string
	Parent string // parent of the new commit; "" for a branch without history
	// Edits has files' new contents by path; nil deletes a file or folder. Executable files stay executable. Deletions
	// come first, so "a": nil with "a/b": content replaces the folder a.
	Edits   map[string][]byte
	Message string
	When    time.Time // author's and committer's time, in whole seconds
	Author  Identity  // author and committer; default: git.Options.Identity
	Delete  bool      // remove the branch
}

// Merge has the edits of merging a commit into a target: contents by path, nil for a deleted file. Clean means that the
// target descends from the commit's parent, and has the parent's files at these paths.
type Merge struct {
	Edits map[string][]byte
	Clean bool
}

// Does reports whether the merge is clean and has exactly these edits.
func (m Merge) Does(edits map[string][]byte) bool {
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	return m.Clean && maps.EqualFunc(m.Edits, edits, same)
}

// Identity is a commit author's name and e-mail address.
type Identity struct{ Name, Email string }

// OwnBranches prefixes all branches that gitrollout pushes to, except the users' branch.
const OwnBranches = "gitrollout/"

// Trailers of state commits, for programs.
const (
	TrailerCluster = "Gitrollout-Cluster" // name of the cluster
	TrailerEpoch   = "Gitrollout-Epoch"   // epoch of the process that made the commit
	TrailerSource  = "Gitrollout-Source"  // commit of the users' branch
	TrailerApp     = "Gitrollout-App"     // an app's name and state; one trailer for each app in the commit
	TrailerArchive = "Gitrollout-Archive" // the branch's head before a compaction removed older commits
)

// Trailer returns a trailer line of a commit message.
func Trailer(name, value string) string { return name + ": " + value + "\n" }

// StateBranch returns the default name of a cluster's state branch.
func StateBranch(cluster string) string { return OwnBranches + "state/" + cluster }

// ArchiveBranch returns the branch for the commits that a compaction removes from a state branch.
func ArchiveBranch(cluster string, at time.Time) string {
	return OwnBranches + "archive/" + cluster + "/" + at.UTC().Format("2006-01-02T150405Z")
}

// ProposalBranch returns the branch of an app's proposals of one kind.
func ProposalBranch(kind ProposalKind, cluster, app string) string {
	return OwnBranches + string(kind) + "/" + cluster + "/" + app
}

// StatusContext returns the name of an app's commit status on a forge.
func StatusContext(cluster, app string) string { return "gitrollout/" + cluster + "/" + app }

// ProposalBranches returns the branches that an app's proposals may have or, without an app, their prefixes.
func ProposalBranches(cluster, app string) []string {
	return []string{ProposalBranch(ProposePromotion, cluster, app), ProposalBranch(ProposeRevert, cluster, app)}
}

// IsProposal reports whether a branch belongs to a proposal, so that force-pushes and removal are allowed.
func IsProposal(branch string) bool {
	rest, ours := strings.CutPrefix(branch, OwnBranches)
	kind, _, below := strings.Cut(rest, "/")
	return ours && below && (ProposalKind(kind) == ProposePromotion || ProposalKind(kind) == ProposeRevert)
}
