package status

import (
	"cmp"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Goal is a condition to wait for. If the app has no releases, Hash is empty. An empty Digest matches any content. If
// the newest commit cannot be rendered, both are empty.
type Goal struct {
	Until  string // one of GoalNames()
	Hash   rollout.Hash
	Digest string // of the render
	Commit string // for messages
}

// GoalNames returns Goal.Until's values.
func GoalNames() []string { return []string{"healthy", "paused", "started", "degraded"} }

// Ending is a wait's outcome.
type Ending int

const (
	NotYet Ending = iota
	Reached
	Missed // the version was rejected, reverted, or replaced by a newer push
	Stuck  // a user must act: the app is held, or serves but is unhealthy
)

// Verdict is a wait's outcome, with a text for users.
type Verdict struct {
	Ending Ending
	Text   string
}

// Judge returns the outcome for the present state.
func (g Goal) Judge(in strategies.Input) Verdict {
	s := in.State
	ours := s.Release != nil && s.Release.Hash == g.Hash
	runs := ours && (g.Digest == "" || in.Source != nil && in.Source.Digest == g.Digest)
	rejection, rejected := s.IsRejected(g.Hash)
	down := s.Phase == rollout.Degraded || s.Phase == rollout.Aborting
	switch {
	case g.Hash == "" && g.Digest == "":
		return stuck(in)
	case g.Until == "started" && (g.serves(in) || runs && !down):
		return Verdict{Reached, "up to date with " + rollout.ShortID(cmp.Or(g.Commit, s.Source))}
	case g.Until == "degraded" && down && (ours || rejected):
		return Verdict{Reached, "it was rejected: " + cmp.Or(rejection.Reason, s.Reason)}
	case g.serves(in) && in.State.Unhealthy != "":
		end := map[bool]Ending{true: Reached, false: Stuck}[g.Until == "degraded"]
		return Verdict{end, "it serves, but is unhealthy: " + s.Unhealthy}
	case g.serves(in) && g.Until == "degraded":
		return Verdict{Missed, "it is healthy"}
	case g.serves(in) && strategies.Ailing(in) != "" && g.Until == "healthy":
		return Verdict{}
	case g.serves(in):
		return Verdict{Reached, "healthy at " + rollout.ShortID(s.Source)}
	case g.Until == "paused" && runs && s.Phase == rollout.Paused:
		return Verdict{Reached, "paused at " + rollout.ShortID(s.Release.Commit)}
	case rejected && !ours:
		return Verdict{Missed, "it was rejected: " + rejection.Reason}
	case ours && s.Phase == rollout.Aborting:
		return Verdict{Missed, "it is being rolled back to stable: " + s.Reason}
	case g.overtaken(in):
		return Verdict{Missed, "another version replaced this version: " + rollout.ShortID(s.Source)}
	}
	return stuck(in)
}

func (g Goal) serves(in strategies.Input) bool {
	s, isOurs := in.State, in.Source != nil && in.Source.Digest == g.Digest
	if g.Digest == "" {
		isOurs = s.Stable != nil && s.Stable.Hash == g.Hash
	}
	return isOurs && s.Phase == rollout.Healthy && (s.Held == nil || s.Held.Waits())
}

func (g Goal) overtaken(in strategies.Input) bool {
	head, s := in.Head.Render, in.State
	if head == nil || s.Source == "" || (g.Digest != "" && head.Digest == g.Digest) ||
		(g.Digest == "" && head.Release() == g.Hash) {
		return false
	}
	isFollowed := in.Source != nil && in.Source.Digest == head.Digest
	return isFollowed || s.Release != nil && s.Release.Hash == head.Release() && s.Release.Hash != g.Hash
}

// stuck ignores a State.Held that is about an older commit.
func stuck(in strategies.Input) Verdict {
	h := in.State.Held
	switch {
	case in.Head.Err != nil:
		return Verdict{Stuck, "held: " + rollout.OneLine(in.Head.Err.Error())}
	case h != nil && !h.Waits() && (h.Commit == "" || h.Commit == in.Head.Commit.ID):
		return Verdict{Stuck, "held: " + rollout.OneLine(h.Message)}
	}
	return Verdict{}
}
