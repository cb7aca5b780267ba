package rollout

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"time"
)

// ErrConflict is the error of a push to a branch that is not at the expected commit. The push has changed nothing.
var ErrConflict = errors.New("the branch has moved")

// ErrUnreachable is the error of a fetch or push if the connection or the server fails, or if the response is late. A
// retry may succeed. The server may have accepted a push despite the error.
var ErrUnreachable = errors.New("unreachable")

// ErrOverwritten is the error for an applied object that another writer changes again and again.
var ErrOverwritten = errors.New("overwritten again and again")

// RetryError is a server's error that requests a pause before the next request.
type RetryError struct {
	error
	After time.Duration // 0 if the server gives no time
}

// NewRetryError returns err with the pause that the server requests.
func NewRetryError(err error, after time.Duration) error { return &RetryError{err, after} }

// Unwrap returns the error without the pause.
func (e *RetryError) Unwrap() error { return e.error }

// RetryAfter returns the pause that an error requests, or 0.
func RetryAfter(err error) time.Duration {
	wait := &RetryError{}
	_ = errors.As(err, &wait)
	return wait.After
}

// Heads has the newest commit of each branch, or "" for an absent branch.
type Heads struct {
	Main      string
	State     string
	Policy    string            // "" without a branch for the policy
	Proposals map[string]string // the key is a short branch name, such as gitrollout/promote/prod/shop

	// Refused is set if the users' newest commit is not trusted. Unless Blind is set, Main is the newest trusted one.
	Refused *Refusal
	// Keys identifies the trusted signing keys, so that a change can be detected.
	Keys string
}

// Refusal is a commit on the users' branch that gitrollout does not follow, because it has no trusted signature.
type Refusal struct {
	Commit string
	Reason string
	// Blind means that no commit was trusted since the process started. Heads.Main is then used only for configuration.
	Blind bool
}

// Update is the change of one branch in a push. It adds a commit with edits, or removes the branch.
type Update struct {
	Branch string // short name
	// Old is the expected commit, or "" for none. Only a proposal may be deleted, or get a Parent other than Old.
	Old    string
	Parent string // commit to build on; "" for a branch without history
	// Edits are the new contents of files by path. A nil content deletes a file or folder. A file keeps its executable
	// bit. Deletions come first, so that "a": nil and "a/b": content replace the folder a.
	Edits   map[string][]byte
	Message string
	When    time.Time // author's and committer's time, to the second
	Author  Identity  // author and committer; default: the identity in git.Options
	Delete  bool      // remove the branch
}

// Merge is the result of merging a commit into a target commit. The key of Edits is a path; the value nil deletes the
// file. Clean means that the target descends from the commit's parent, and has the parent's files at these paths.
type Merge struct {
	Edits map[string][]byte
	Clean bool
}

// Does reports whether the merge is clean and its Edits equal the given edits.
func (m Merge) Does(edits map[string][]byte) bool {
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	return m.Clean && maps.EqualFunc(m.Edits, edits, same)
}

// Identity is the author of a commit.
type Identity struct{ Name, Email string }

// OwnBranches is the prefix of all branches that gitrollout pushes to, except the users' branch.
const OwnBranches = "gitrollout/"

// These trailers repeat the message of a state commit, so that programs can read it.
const (
	TrailerCluster = "Gitrollout-Cluster" // name of the cluster
	TrailerEpoch   = "Gitrollout-Epoch"   // epoch of the process that made the commit
	TrailerSource  = "Gitrollout-Source"  // commit of the users' branch
	TrailerApp     = "Gitrollout-App"     // an app's name and state; one for each app of the commit
	TrailerArchive = "Gitrollout-Archive" // the branch's last commit before older commits were removed
)

// Trailer returns one line of a commit's trailers.
func Trailer(name, value string) string { return name + ": " + value + "\n" }

// StateBranch returns the default name of a cluster's state branch.
func StateBranch(cluster string) string { return OwnBranches + "state/" + cluster }

// ArchiveBranch returns the branch that keeps the old commits that a compaction removes from a state branch.
func ArchiveBranch(cluster string, at time.Time) string {
	return OwnBranches + "archive/" + cluster + "/" + at.UTC().Format("2006-01-02T150405Z")
}

// ProposalBranch returns the branch of an app's proposals.
func ProposalBranch(kind ProposalKind, cluster, app string) string {
	return OwnBranches + string(kind) + "/" + cluster + "/" + app
}

// StatusContext returns the name of an app's commit status on a forge.
func StatusContext(cluster, app string) string { return "gitrollout/" + cluster + "/" + app }

// ProposalBranches returns the prefixes of a cluster's proposals.
func ProposalBranches(cluster string) []string {
	return []string{ProposalBranch(ProposePromotion, cluster, ""), ProposalBranch(ProposeRevert, cluster, "")}
}

// IsProposal reports whether a branch belongs to a proposal. Such a branch may be force-pushed and removed.
func IsProposal(branch string) bool {
	rest, ours := strings.CutPrefix(branch, OwnBranches)
	kind, _, below := strings.Cut(rest, "/")
	return ours && below && (ProposalKind(kind) == ProposePromotion || ProposalKind(kind) == ProposeRevert)
}
