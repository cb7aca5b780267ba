package status

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Next is a suggested command with its purpose.
type Next struct {
	To      string `json:"to"`
	Command string `json:"command"`
	Back    bool   `json:"back,omitempty"`   // the command returns to the stable version
	Branch  string `json:"branch,omitempty"` // the proposal that the command merges
	URL     string `json:"url,omitempty"`    // Branch's pull request, if a forge is configured
}

func nextSteps(in strategies.Input, cluster string, possible []propose.Action, proposals map[string]string) []Next {
	out := nextOfHooks(in.State, strategies.Coming(in))
	for _, a := range possible {
		n := Next{To: purpose(in, a), Command: "gitrollout " + string(a.Verb) + " " + in.App.Name}
		for flag, is := range map[string]bool{" --full": a.Full, " --adopt-anyway": a.AdoptAnyway, " --off": a.Off} {
			if is {
				n.Command += flag
			}
		}
		if a.Through != "" {
			n.Command += " --through " + a.Through
		}
		kind := rollout.ProposePromotion
		if n.Back = a.Verb == propose.Undo || a.Verb == rollout.Abort && in.State.Watch == nil; n.Back {
			kind = rollout.ProposeRevert
		}
		merge := Next{To: n.To, Back: n.Back, Branch: propose.BranchOf(kind, cluster, in, proposals)}
		merge.Command = fmt.Sprintf(propose.MergeCommand, merge.Branch)
		_, isProposed := proposals[merge.Branch]
		if isProposed && (a.Verb == propose.Undo || n.To == goOn || a.Through == rollout.ThroughEntry) {
			out = append(out, merge)
		}
		if n.To != "" && (a.Verb != propose.Undo || isUndoable(in, isProposed)) {
			out = append(out, n)
		}
	}
	return out
}

const goOn = "go on"

func purpose(in strategies.Input, a propose.Action) string {
	s, head, coming := in.State, in.Head.Render, strategies.Coming(in)
	isBack := s.Phase == rollout.Degraded || s.Phase == rollout.Aborting
	isOnHold := in.Promotion.Says(rollout.Hold, a.Release) ||
		s.Held.Waits() && head != nil && in.Promotion.Says(rollout.Hold, head.Release())
	switch {
	case a.Verb == propose.Undo && isBack:
		return "go back in Git too"
	case a.Verb == rollout.Abort && coming != nil:
		return "reject it"
	case a.Verb == rollout.Abort && s.Watch != nil:
		return "end the watch"
	case a.Verb == propose.Undo, a.Verb == rollout.Abort:
		return "go back"
	case a.Verb == rollout.Retry && (isBack || strategies.FailedHook(in) != ""):
		return "try it again"
	case a.Off && isOnHold:
		return "end the hold"
	case a.AdoptAnyway:
		return "take it over anyway"
	case a.Through == rollout.ThroughEntry:
		return "take the change now"
	case a.Verb != rollout.Promote || isOnHold || coming != nil || head == nil:
		return ""
	case a.Full:
		return purposeOfFull(s, strategies.Key(in) != nil || strategies.IsOpen(in) || strategies.Early(in) != nil)
	case strategies.Key(in) != nil:
		return goOn
	case strategies.IsOpen(in): // the gate is open already
		return ""
	}
	return "skip the wait"
}

func purposeOfFull(s rollout.State, hasGate bool) string {
	hasSteps := func(p rollout.Progress) bool { return p.Step < p.Of }
	switch {
	case s.Held.Is(rollout.HeldAdoption):
		return "replace the running version"
	case s.Held.Is(rollout.HeldRenamed) && s.Release == nil:
		return "start all its pods at once"
	case s.Held.Is(rollout.HeldRolloutRemoved, rollout.HeldRenamed):
		return "promote it fully"
	case s.Phase == rollout.Aborting && s.Rollback.Late:
		return "replace all pods by Git's version at once, without steps"
	case s.Held == nil && (s.Phase == rollout.Progressing || s.Phase == rollout.Stalled) && !hasGate &&
		slices.ContainsFunc(s.Progress, hasSteps):
		return "skip all steps"
	}
	return ""
}

// isUndoable reports whether an undo is possible. An undo must not revert a newer release that waits.
func isUndoable(in strategies.Input, isProposed bool) bool {
	s, head := in.State, in.Head.Render
	switch {
	case s.Phase == rollout.Degraded || s.Phase == rollout.Aborting:
		_, retryable := strategies.Retryable(in)
		return !isProposed && retryable
	case s.Release == nil || strategies.Coming(in) != nil || head == nil:
		return false
	}
	return s.Phase == rollout.Paused || s.Phase == rollout.Stalled || head.Release() == s.Release.Hash
}
