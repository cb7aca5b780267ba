package reconciler

import (
	"errors"
	"maps"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// asRecorded returns the app's configuration at its recorded commit or, if that commit is unavailable, at its stable
// commit.
func (l *poller) asRecorded(a rollout.App, s rollout.State) (then rollout.App, unread bool) {
	commits := []string{s.Source}
	if s.Stable != nil {
		commits = append(commits, s.Stable.Commit)
	}
	for _, commit := range commits {
		tree, err := l.fetcher.tree(commit)
		if err != nil {
			continue
		}
		if _, err := l.reader.ConfigAt(tree); err == nil {
			then = l.reader.AppAt(tree, s.Named(a))
			then.Path, then.Formerly = a.Path, a.Formerly
			return then, false
		}
	}
	return a, s.Source != ""
}

// wasRemoved returns the recorded error if the app left the configuration.
func (l *poller) wasRemoved(s rollout.State) (removed *rollout.InvalidError, unread bool) {
	if s.Held == nil {
		return nil, false
	}
	tree, err := l.fetcher.tree(s.Held.Commit)
	if err != nil {
		return nil, errors.Is(err, source.ErrNotReady)
	}
	_, lists, err := l.reader.Listed(tree, s.App)
	saysSo := strings.Contains(s.Held.Message, "no longer lists "+s.App+" (") // see source.Branch.Removed
	if lists || err != nil && !saysSo {
		return nil, false
	}
	return &rollout.InvalidError{Msg: s.Held.Message, Reason: s.Held.Reason}, false
}

// viewOfRecord sets an app's view from the record. Callers use it while no configuration is readable.
func (l *poller) viewOfRecord(a *appView, b *source.Branch) {
	e, _ := l.states.of(a.Name)
	if a.removed, a.unread = l.wasRemoved(e.state); a.removed != nil {
		a.removedBy = rollout.Commit{ID: e.state.Held.Commit}
		return
	}
	if !a.unread {
		a.App, a.unread = l.asRecorded(a.App, e.state)
	}
	a.App = b.WithProject(a.App)
}

func (l *poller) locate(v *gitView) {
	next := *v
	next.apps = maps.Clone(v.apps)
	var found []string
	for _, name := range sortedKeys(v.apps) {
		if !v.apps[name].unread {
			continue
		}
		a := *v.apps[name]
		if l.viewOfRecord(&a, v.branch); !a.unread {
			next.apps[name], found = &a, append(found, name)
		}
	}
	if len(found) > 0 {
		l.publish(v, &next, found, false)
	}
}
