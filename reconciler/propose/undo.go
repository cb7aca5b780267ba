package propose

import (
	"errors"
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Version is a past version of an app.
type Version struct {
	Hash   rollout.Hash // "" without stages
	Commit string       // on the users' branch
	Served bool
}

func (v Version) String() string {
	if v.Hash == "" {
		return rollout.ShortID(v.Commit)
	}
	return fmt.Sprintf("%s of %s", v.Hash, rollout.ShortID(v.Commit))
}

// Back finds the version with the hash or, if the hash is empty, the previous version. It looks in the state, and then
// in the recorded versions from newest to oldest.
func Back(s rollout.State, hash rollout.Hash, recorded func() ([]Version, error)) (Version, error) {
	if hash == "" && s.Release != nil && s.Stable == nil {
		return Version{},
			errors.New("its first deployment is in flight, and there is no version to go back to; push a version that works")
	}
	if s.Stable != nil && (hash == s.Stable.Hash || hash == "" && (s.Release != nil || s.Phase == rollout.Degraded)) {
		return Version{Hash: s.Stable.Hash, Commit: s.Stable.Commit}, nil
	}
	if r, found := s.IsRejected(hash); found && hash != "" {
		return Version{Hash: hash, Commit: r.Commit}, nil
	}
	versions, err := recorded()
	if err != nil {
		return Version{}, err
	}
	for _, v := range versions {
		_, rejected := s.IsRejected(v.Hash)
		current := s.Source == v.Commit || (s.Stable != nil && v.Hash == s.Stable.Hash)
		if hash != "" && v.Hash == hash || hash == "" && v.Served && !rejected && !current {
			return v, nil
		}
	}
	what := "no version before the serving version is recorded"
	if hash != "" {
		what = fmt.Sprintf("--to %s: no release with this hash is recorded", hash)
	}
	return Version{}, fmt.Errorf("%s; name a commit with --to", what)
}

// UndoSubject returns the first words of an undo's subject. The reconciler recognizes an undo by these words.
func UndoSubject(s rollout.State) string {
	what := rollout.ShortID(s.Source)
	switch {
	case s.Release != nil:
		what = string(s.Release.Hash)
	case s.Phase == rollout.Degraded:
		what = "the rejected version"
	case s.Stable != nil:
		what = string(s.Stable.Hash)
	}
	return fmt.Sprintf("Undo %s of %s", what, s.App)
}

// Undo proposes to roll an app back. The caller sets When.
func (t Target) Undo(s rollout.State, to Version, subject string, v Reversion, reason string) Change {
	o := Change{
		App: s.App, Branch: rollout.ProposalBranch(rollout.ProposeRevert, t.Cluster, s.App), Edits: v.Edits, uses: v.uses,
		Subject: fmt.Sprintf("%s in %s: back to %s", UndoSubject(s), t.Cluster, to),
		Effect:  fmt.Sprintf("%s goes back to %s when the proposal is merged", s.App, to),
	}
	o.Message = o.Subject + "\n\n"
	if r := s.Release; r != nil {
		o.Message += releaseLine(r, " is in flight") + "\n"
	} else if r := s.Stable; r != nil {
		o.Message += releaseLine(r, " serves") + "\n"
	}
	o.Message += fmt.Sprintf("\nThis restores the files of %s as they were in %s:\n%s\n", s.App,
		rollout.ShortID(to.Commit), subject)
	if reason != "" {
		o.Message += "\nReason: " + reason + "\n"
	}
	o.Message += v.Caution()
	return o
}
