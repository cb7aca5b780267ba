package propose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func promoteEntry(in strategies.Input) (decision, error) {
	e := in.Entry
	if e.Open {
		return decision{}, errors.New("it does not wait for other apps or clusters")
	}
	p := entryOf(e.Release, e.Commit.ID)
	p.At = rollout.Second(in.Now).Format(time.RFC3339)
	return decision{promotion: p, subject: fmt.Sprintf("Let %s take %s", in.App.Name, e.Commit.Short()),
		then: in.App.Name + " does not wait for other apps or clusters; " + watchHint(in.App.Name)}, nil
}

func entryOf(release rollout.Hash, commit string) *rollout.Promotion {
	return &rollout.Promotion{Release: release, Decision: rollout.Promote, Through: rollout.ThroughEntry, Commit: commit}
}

// Entry proposes to let an app's change into all clusters of a stage. Only the first of these clusters proposes.
func Entry(cluster string, in strategies.Input) Change {
	e := in.Entry
	o := Change{Branch: rollout.ProposalBranch(rollout.ProposePromotion, cluster, in.App.Name), When: e.Commit.When,
		Edits: map[string][]byte{}, Subject: fmt.Sprintf("Let %s into stage %s", in.App.Name, in.Stage.Name)}
	for c, version := range e.Versions {
		file := rollout.PromotionPath(c, in.App.Name)
		o.Edits[file], _ = entryOf(version, e.Commit.ID).For(in.State).Encode() // texts can always be encoded
	}
	o.Message = fmt.Sprintf("%s\n\nCommit %s by %s:\n%s\n\nMerge this commit to let the change into %s.\n", o.Subject,
		e.Commit.Short(), e.Commit.Author, e.Commit.Subject, strings.Join(slices.Sorted(maps.Keys(e.Versions)), ", "))
	return o
}

// Awaits returns the commit whose approval an app lacks, or "".
func Awaits(s *rollout.State, p *rollout.Promotion) string {
	h := s.Held
	if !h.Is(rollout.HeldStage) || !strings.HasSuffix(h.Message, " promote "+s.App+" --through "+rollout.ThroughEntry) ||
		p != nil && p.Commit == h.Commit && strings.HasPrefix(h.Message, "release "+string(p.Release)+" of ") {
		return ""
	}
	return h.Commit
}

// BranchOf returns the branch of an app's proposal. This can be a joint branch.
func BranchOf(kind rollout.ProposalKind, cluster string, in strategies.Input, proposals map[string]string) string {
	own, commit := rollout.ProposalBranch(kind, cluster, in.App.Name), Awaits(&in.State, in.Promotion)
	if kind == rollout.ProposePromotion && commit != "" && proposals[own] == "" {
		return rollout.JointBranch(cluster, commit)
	}
	return own
}

func waitsForEntry(in strategies.Input) bool {
	return in.Entry != nil && !in.Entry.Open && in.State.Release == nil
}
