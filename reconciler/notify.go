package reconciler

import (
	"gitrollout.dev/gitrollout/rollout"
)

// Notifier tells people what the state branch records. It returns at once, and
// what comes of it changes nothing here: no release waits for it.
//
// It is told where the branch is and what the configuration asks for whenever
// either changes, before anything is decided on them, and of each commit that
// this process makes.
type Notifier interface {
	Notify(config *rollout.Config, head string, made *rollout.Recorded)
}

// notify tells the Notifier of what Git says, if it has not heard it.
func (r *Reconciler) notify() {
	if r.Notifier == nil || r.config == nil || !r.stateKnown || (r.notifiedHead == r.heads.State && r.notifiedConfig == r.config) {
		return
	}
	r.notifiedHead, r.notifiedConfig = r.heads.State, r.config
	r.Notifier.Notify(r.config, r.heads.State, nil)
}

// notifyOf tells it of a commit that was made of steps, before their apps have
// taken on the states that it records.
func (r *Reconciler) notifyOf(id string, made Update, changed []*step) {
	if r.Notifier == nil {
		return
	}
	commit := rollout.Recorded{ID: id, Parent: made.Parent, When: made.When}
	for _, s := range changed {
		commit.Apps = append(commit.Apps, rollout.RecordedApp{App: s.app.Name, Before: s.app.state, After: s.numbered()})
	}
	r.notifiedHead, r.notifiedConfig = id, r.config
	r.Notifier.Notify(r.config, id, &commit)
}
