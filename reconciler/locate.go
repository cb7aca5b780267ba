package reconciler

import (
	"maps"

	"gitrollout.dev/gitrollout/rollout"
)

// asRecorded returns the app's entry, with folder and permissions, in the configuration of its current commit, or of
// the stable one if unreadable. Only commits of the users' branch count. The app is unread while neither can be read.
func (l *poller) asRecorded(a rollout.App, s rollout.State) (then rollout.App, unread bool) {
	commits := []string{s.Source}
	if s.Stable != nil {
		commits = append(commits, s.Stable.Commit)
	}
	for _, commit := range commits {
		tree, held := l.Repository.Held(commit)
		if !held || !l.renders.isOurs(commit) {
			l.renders.fetch(commit)
			continue
		}
		if _, err := l.reader.ConfigAt(tree); err == nil {
			then = l.reader.AppAt(tree, s.Named(a)) // the app may have had another name and folder there
			then.Path, then.Formerly = a.Path, a.Formerly
			return then, false
		}
	}
	return a, s.Source != ""
}

// locate finds unread apps' entries once their commits are fetched.
func (l *poller) locate(v *gitView) {
	next := *v
	next.apps = maps.Clone(v.apps)
	var found []string
	for _, name := range sortedKeys(v.apps) {
		if !v.apps[name].unread {
			continue
		}
		e, _ := l.states.of(name)
		a := *v.apps[name]
		if a.App, a.unread = l.asRecorded(a.App, e.state); a.unread {
			continue
		}
		a.App = v.branch.WithProject(a.App)
		next.apps[name], found = &a, append(found, name)
	}
	if len(found) > 0 {
		l.publish(v, &next, found, false)
	}
}
