package propose

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Wanted has the proposals that a state needs.
type Wanted struct {
	Promotion *rollout.Promotion
	Gate      int // last shut gate
	Revert    bool
	Unknown   bool // unknown whether an approval is wanted
}

// WantedBy returns the needed proposals.
func WantedBy(in strategies.Input) Wanted {
	s := in.State
	step, _ := strategies.Gate(in)
	isRejected := s.Phase == rollout.Degraded || s.Rollback != nil && s.Rollback.Reject
	w := Wanted{Promotion: strategies.Key(in), Gate: step, Revert: isRejected}
	if e := in.Entry; e != nil && !e.Open && s.Held.Is(rollout.HeldStage) {
		isRecorded := s.Held.Commit == e.Commit.ID && strings.HasSuffix(s.Held.Message, e.Hold)
		if w.Unknown = e.Hold == ""; len(e.Versions) > 0 && isRecorded {
			w.Promotion = entryOf(e.Release, e.Commit.ID)
		}
	}
	return w
}

// Plan has the facts for a proposal's next step.
type Plan struct {
	Existing string         // the branch's commit, or ""
	Wanted   *Change        // nil if the state wants none
	IsNew    bool           // this transition is the reason
	IsKept   bool           // a forge may be merging the branch
	Merge    *rollout.Merge // of the branch into the head; nil if unreadable
}

// Step is an action on a proposal's branch.
type Step int

const (
	Leave Step = iota
	Push
	Delete
)

// Calculate returns the next step and its reason. Only a new transition restores a proposal that a user deleted. An
// equal, mergeable proposal stays, because forges dismiss approvals when a branch moves.
func (p Plan) Calculate() (Step, string) {
	switch {
	case p.Wanted == nil && (p.Existing == "" || p.IsKept):
		return Leave, ""
	case p.Wanted == nil:
		return Delete, "no proposal is wanted"
	case p.IsNew && (p.Existing == "" || p.Merge == nil):
		return Push, "its reason is new"
	case p.Existing == "" || p.Merge == nil || p.Merge.Does(p.Wanted.Edits):
		return Leave, ""
	case !p.Merge.Clean:
		return Push, "it cannot be merged any more: the files that it edits have changed since, or the branch was rewritten"
	}
	return Push, "its branch differs from the proposal"
}
