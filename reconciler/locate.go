package reconciler

import (
	"errors"
	"maps"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// asRecorded returns the app's entry in the configuration at its recorded commit, or else at its stable commit. It
// ignores commits outside of the users' branch. The result "unread" is true until either commit can be read.
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
			then = l.reader.AppAt(tree, s.Named(a)) // the app may have had another name and folder at this commit
			then.Path, then.Formerly = a.Path, a.Formerly
			return then, false
		}
	}
	return a, s.Source != ""
}

// wasRemoved returns the recorded error if the app is held (phase Held) because it left the configuration. The result
// "unread" is true until the commit that removed the app is fetched.
func (l *poller) wasRemoved(s rollout.State) (removed *rollout.InvalidError, unread bool) {
	if s.Held == nil {
		return nil, false
	}
	tree, err := l.fetcher.tree(s.Held.Commit)
	if err != nil {
		return nil, errors.Is(err, source.ErrNotReady)
	}
	lists, err := l.reader.Lists(tree, s.App)
	saysSo := strings.Contains(s.Held.Message, "no longer lists "+s.App+" (") // source.Branch.Removed writes this text
	if lists || err != nil && !saysSo {
		return nil, false // the configuration may be unreadable at this commit
	}
	return &rollout.InvalidError{Msg: s.Held.Message, Reason: s.Held.Reason}, false
}

// viewOfRecord sets an app's fields from its record and older commits, because no configuration can be read yet.
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

// locate reads the configuration entries of unread apps whose commits were fetched, and publishes the new view.
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
