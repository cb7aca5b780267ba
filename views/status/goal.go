package status

import (
	"cmp"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Goal is what somebody waits for. An empty hash is an app without stages; an empty
// digest is any content with the hash.
type Goal struct {
	Until  string // one of GoalNames
	Hash   rollout.Hash
	Digest string // of the render
}

// GoalNames lists what can be waited for.
func GoalNames() []string { return []string{"healthy", "paused", "started", "degraded"} }

// Ending is how waiting for a Goal ends.
type Ending int

// The endings.
const (
	NotYet  Ending = iota
	Reached        // it is what was waited for
	Missed         // it will not be: rejected, reverted, or overtaken by a newer push
	Stuck          // it is held, and a person has to do something
)

// Verdict is what a look has told, in words too.
type Verdict struct {
	Ending Ending
	Text   string
}

// Judge compares a goal with where the app stands.
func (g Goal) Judge(in strategies.Input) Verdict {
	s := in.State
	ours := s.Release != nil && (g.Hash == "" || s.Release.Hash == g.Hash)
	rejection, rejected := s.IsRejected(g.Hash)
	down := s.Phase == rollout.Degraded || s.Phase == rollout.Aborting
	switch {
	case g.Until == "degraded" && down && (ours || rejected):
		return Verdict{Reached, "it was rejected: " + cmp.Or(rejection.Reason, s.Reason)}
	case g.serves(in) && in.State.Unhealthy != "":
		end := map[bool]Ending{true: Reached, false: Stuck}[g.Until == "degraded"]
		return Verdict{end, "it serves, and is not well: " + s.Unhealthy}
	case g.serves(in) && g.Until == "degraded":
		return Verdict{Missed, "it is healthy"}
	case g.serves(in) && strategies.Ailing(in) != "" && g.Until == "healthy":
		return Verdict{}
	case g.serves(in):
		return Verdict{Reached, "healthy at " + rollout.ShortID(s.Source)}
	case g.Until == "paused" && ours && s.Phase == rollout.Paused, g.Until == "started" && ours && !down:
		return Verdict{Reached, g.Until + " at " + rollout.ShortID(s.Release.Commit)}
	case rejected && !ours:
		return Verdict{Missed, "it was rejected: " + rejection.Reason}
	case ours && s.Phase == rollout.Aborting:
		return Verdict{Missed, "it goes back to stable: " + s.Reason}
	case g.overtaken(in):
		return Verdict{Missed, "another version has taken its place: " + rollout.ShortID(s.Source)}
	case g.held(in):
		return Verdict{Stuck, "it is held"}
	}
	return Verdict{}
}

// serves reports whether what is waited for is what the cluster was given, and is healthy.
func (g Goal) serves(in strategies.Input) bool {
	s := in.State
	if s.Phase != rollout.Healthy || (s.Held != nil && !s.Held.Waits()) {
		return false
	}
	if g.Digest != "" {
		return in.Source != nil && in.Source.Digest == g.Digest
	}
	return s.Stable != nil && s.Stable.Hash == g.Hash
}

// overtaken reports whether the branch asks for something else, and that is what the app follows.
func (g Goal) overtaken(in strategies.Input) bool {
	head, s := in.Head.Render, in.State
	if head == nil || s.Source == "" || (g.Digest != "" && head.Digest == g.Digest) ||
		(g.Digest == "" && head.Release() == g.Hash) {
		return false
	}
	if in.Source != nil && in.Source.Digest == head.Digest {
		return true
	}
	return s.Release != nil && s.Release.Hash == head.Release() && s.Release.Hash != g.Hash
}

// held reports whether the app waits for a person. A record of an older commit's trouble may be outdated.
func (g Goal) held(in strategies.Input) bool {
	h := in.State.Held
	if in.Head.Err != nil {
		return true
	}
	return h != nil && !h.Waits() && (h.Commit == "" || h.Commit == in.Head.Commit.ID)
}
