package status

import (
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// wait tracks a release whose hooks run before its begin, and returns it at the end. If it neither begins nor is
// rejected, h.past gets it as superseded or reverted.
func (h *chronicle) wait(e Event) (ended *Past) {
	run, waits := h.waitsFor(e.State)
	if p := h.waiting; p != nil && !(waits && run.Release == p.Hash) {
		h.waiting, ended = nil, p
		rejection, isRejected := e.State.IsRejected(p.Hash)
		isOver := isRejected && !rejection.At.Before(p.Started)
		if hasBegun := e.State.Release != nil && e.State.Release.Hash == p.Hash; !hasBegun && !isOver {
			p.Outcome = Reverted
			if waits || e.State.Release != nil {
				p.Outcome = Superseded
			}
			p.note(e)
			p.ended(e.At)
			h.past = append(h.past, *p)
		}
	}
	if waits && h.waiting == nil {
		h.waiting = &Past{Hash: run.Release, Commit: e.State.Held.Commit, Started: run.Since, Outcome: InFlight}
	}
	if h.waiting != nil {
		h.waiting.note(e)
	}
	return ended
}

func (h *chronicle) waitsFor(s rollout.State) (run rollout.HookRun, waits bool) {
	if len(s.Hooks) == 0 || s.Release != nil || s.Held == nil || h.waiting == nil && s.Held.Reason != rollout.HeldHook {
		return run, false
	}
	run = s.Hooks[len(s.Hooks)-1]
	return run, run.When == rollout.HookBefore && !run.Past && (s.Stable == nil || s.Stable.Hash != run.Release)
}

func (p *Past) takeUp(waited *Past) {
	if waited != nil && waited.Hash == p.Hash {
		p.Transitions, p.Hooks = waited.Transitions, waited.Hooks
	}
}

// noteHooks keeps logs, because a record has only the newest.
func (p *Past) noteHooks(s rollout.State) {
	for _, run := range s.Hooks {
		i := slices.IndexFunc(p.Hooks, func(known rollout.HookRun) bool { return known.Job == run.Job })
		switch {
		case i >= 0 && (run.Log != "" || p.Hooks[i].Log == ""):
			p.Hooks[i] = run
		case i < 0 && run.Release == p.Hash && !run.Past && p.Ended == nil:
			p.Hooks = append(p.Hooks, run)
		}
	}
}
