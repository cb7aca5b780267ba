package status

import (
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Next is a suggested command with its purpose.
type Next struct {
	To      string `json:"to"`
	Command string `json:"command"`
	Branch  string `json:"branch,omitempty"` // the proposal that the command merges
	URL     string `json:"url,omitempty"`    // the pull request of Branch, if a forge is configured
}

func nextSteps(in strategies.Input, cluster string, proposals map[string]string) (out []Next) {
	app, s := in.App.Name, in.State
	merge := func(to string, kind rollout.ProposalKind) {
		branch := rollout.ProposalBranch(kind, cluster, app)
		if _, exists := proposals[branch]; exists {
			out = append(out, Next{To: to, Branch: branch,
				Command: "git fetch && git merge --no-ff origin/" + branch + " && git push"})
		}
	}
	add := func(to string, commands ...string) {
		out = append(out, rollout.Mapped(commands, func(c string) Next { return Next{To: to, Command: c} })...)
	}
	out = append(out, nextOfHooks(s, strategies.Coming(in), strategies.FailedHook(in) != "", app)...)
	switch {
	case s.Held.Waits() && in.Head.Render != nil && in.Promotion.Says(rollout.Hold, in.Head.Render.Release()):
		add("end the hold", "gitrollout hold "+app+" --off")
		if strategies.Coming(in) != nil {
			add("reject it", "gitrollout abort "+app)
		}
	case strategies.Coming(in) != nil:
		add("reject it", "gitrollout abort "+app)
	case s.Held.Is(rollout.HeldAdoption):
		add("replace the running version", "gitrollout promote "+app+" --full")
	case s.Held.Is(rollout.HeldRenamed) && s.Release == nil:
		add("start all its pods at once", "gitrollout promote "+app+" --full")
	case s.Held.Is(rollout.HeldForeign):
		add("take it over anyway", "gitrollout promote "+app+" --adopt-anyway")
	case s.Phase == rollout.Degraded:
		merge("go back in Git too", rollout.ProposeRevert)
		if strategies.CanRetry(in) {
			add("try it again", "gitrollout retry "+app)
		}
	case s.Phase == rollout.Aborting:
		merge("go back in Git too", rollout.ProposeRevert)
		if s.Rollback.Late && strategies.CanOvertake(in) {
			add("replace all pods by Git's version at once, without steps", "gitrollout promote "+app+" --full")
		}
	case s.Release == nil || s.Stable == nil:
		merge("go back", rollout.ProposeRevert)
	default:
		nextInFlight(in, merge, add)
	}
	return out
}

// nextInFlight adds the commands for a release in flight. The app must have a stable version.
func nextInFlight(in strategies.Input, merge func(to string, kind rollout.ProposalKind),
	add func(to string, commands ...string)) {
	app, s, head := in.App.Name, in.State, in.Head.Render
	switch {
	case in.Promotion.Says(rollout.Hold, s.Release.Hash):
		add("end the hold", "gitrollout hold "+app+" --off")
	case s.Held.Is(rollout.HeldRolloutRemoved, rollout.HeldRenamed):
		add("promote it fully", "gitrollout promote "+app+" --full")
	case s.Held != nil || head == nil: // a promotion would be refused, or have no effect
	case propose.WantedBy(in).Promotion != nil:
		merge("go on", rollout.ProposePromotion)
		add("go on", "gitrollout promote "+app)
	default:
		if _, timed := strategies.TimedPause(in); timed {
			add("skip the wait", "gitrollout promote "+app)
		}
	}
	merge("go back", rollout.ProposeRevert)
	stands := s.Phase == rollout.Paused || s.Phase == rollout.Stalled
	// An undo needs a readable head. If the head has a newer release that waits, an undo would revert this newer release.
	if head != nil && (stands || head.Release() == s.Release.Hash) {
		add("go back", "gitrollout undo "+app) // not git revert: the release's commits may also have changed other apps
	}
	add("go back", "gitrollout abort "+app)
}
