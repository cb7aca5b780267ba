package rollout

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"time"
)

// ErrConflict means that a branch was not at the expected commit. Nothing was pushed.
var ErrConflict = errors.New("the branch has moved")

// ErrUnreachable means that a fetch or push failed at the connection or server, or took too long. A push may still have
// succeeded.
var ErrUnreachable = errors.New("unreachable")

// ErrOverwritten means that another writer repeatedly changes an applied object.
var ErrOverwritten = errors.New("overwritten again and again")

// ErrUnlabelled means that the API server refuses changes of pods' labels and annotations (Spec.StableMetadata). The
// error stops no release.
var ErrUnlabelled = errors.New("cannot set labels and annotations of pods")

type retryError struct {
	error
	After time.Duration // 0 if not given
}

// NewRetryError returns err with the pause that the server requests.
func NewRetryError(err error, after time.Duration) error { return &retryError{err, after} }

func (e *retryError) Unwrap() error { return e.error }

// RetryAfter returns a NewRetryError's pause, or 0.
func RetryAfter(err error) time.Duration {
	wait := &retryError{}
	_ = errors.As(err, &wait)
	return wait.After
}

// Heads has each branch's newest commit, "" for an absent branch.
type Heads struct {
	Main      string
	State     string
	Policy    string
	Proposals map[string]string // by short branch name, such as gitrollout/promote/prod/shop

	// Refused is set if the users' branch's newest commit is not trusted. Main is then an older, signed commit.
	Refused *Refusal
	// Keys changes when the trusted signing keys change.
	Keys string
}

// Refusal is a branch's newest commit, which has no trusted signature.
type Refusal struct {
	Commit string
	Reason string
	// Blind means that no head was trusted since the process started. Heads.Main is then used only for configuration.
	Blind bool
}

// Update changes one branch in a push: a commit with edits, or a removal.
type Update struct {
	Branch string // short name
	// Old is the expected head, or "" for a new branch. Only proposal branches may be deleted. Only for these branches,
	// Parent may differ from Old.
	Old    string
	Parent string // parent of the new commit, or ""
	// Edits has contents by path; nil deletes a file or folder. Executable files stay executable. Deletions come first:
	// {"a": nil, "a/b": content} replaces the folder a.
	Edits   map[string][]byte
	Message string
	When    time.Time // time of author and committer, in whole seconds
	Author  Identity  // also committer; default: git.Options.Identity
	Delete  bool
}

// Merge has the edits that merge a commit into a target: contents by path, nil for a deleted file. Clean means that the
// target descends from the commit's parent, and has the parent's files at these paths.
type Merge struct {
	Edits map[string][]byte
	Clean bool
}

// Does reports whether the merge is clean with exactly these edits.
func (m Merge) Does(edits map[string][]byte) bool {
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	return m.Clean && maps.EqualFunc(m.Edits, edits, same)
}

// Identity is a commit author's name and e-mail address.
type Identity struct{ Name, Email string }

// OwnBranches is the prefix of all branches that gitrollout pushes, except the users' branch.
const OwnBranches = "gitrollout/"

// Trailers of state commits.
const (
	TrailerCluster = "Gitrollout-Cluster"
	TrailerEpoch   = "Gitrollout-Epoch"
	TrailerSource  = "Gitrollout-Source"  // commit of the users' branch
	TrailerApp     = "Gitrollout-App"     // an app's name and state; one for each app
	TrailerArchive = "Gitrollout-Archive" // the head before a compaction
)

// Trailer returns a trailer line.
func Trailer(name, value string) string { return name + ": " + value + "\n" }

// StateBranch returns a cluster's default state branch.
func StateBranch(cluster string) string { return OwnBranches + "state/" + cluster }

// ArchiveBranch returns the branch for commits that a compaction removes.
func ArchiveBranch(cluster string, at time.Time) string {
	return OwnBranches + "archive/" + cluster + "/" + at.UTC().Format("2006-01-02T150405Z")
}

// ProposalBranch returns the branch for an app's proposals of one kind.
func ProposalBranch(kind ProposalKind, cluster, app string) string {
	return OwnBranches + string(kind) + "/" + cluster + "/" + app
}

// JointBranch returns the branch whose merge approves a commit for many apps. No app's branch has an "@".
func JointBranch(cluster, commit string) string {
	return ProposalBranch(ProposePromotion, cluster, "@"+commit[:min(12, len(commit))])
}

// StatusContext returns the name of an app's commit status.
func StatusContext(cluster, app string) string { return "gitrollout/" + cluster + "/" + app }

// ProposalBranches returns an app's possible proposal branches or, if app is empty, the branches' prefixes.
func ProposalBranches(cluster, app string) []string {
	return []string{ProposalBranch(ProposePromotion, cluster, app), ProposalBranch(ProposeRevert, cluster, app)}
}

// IsProposal reports whether a branch is a proposal, which gitrollout may force-push and delete.
func IsProposal(branch string) bool {
	rest, ours := strings.CutPrefix(branch, OwnBranches)
	kind, _, below := strings.Cut(rest, "/")
	return ours && below && (ProposalKind(kind) == ProposePromotion || ProposalKind(kind) == ProposeRevert)
}
