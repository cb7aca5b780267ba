package reconciler

import (
	"maps"

	"gitrollout.dev/gitrollout/rollout"
)

// asRecorded is an app as the configuration of the commit that it is at has it, or that of what is stable where nobody
// can read that one, either: it says where its objects are and what it may touch. Only commits of the users' branch
// count. The app is unread while there is none.
func (l *lookout) asRecorded(a rollout.App, s rollout.State) (then rollout.App, unread bool) {
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
			then = l.reader.AppAt(tree, s.Named(a)) // it may have had another name there, and another folder
			then.Path, then.Formerly = a.Path, a.Formerly
			return then, false
		}
	}
	return a, s.Source != ""
}

// locate finds out of apps that are unread where they are, once their commits have been brought.
func (l *lookout) locate(v *view) {
	next := *v
	next.apps = maps.Clone(v.apps)
	var found []string
	for _, name := range sortedKeys(v.apps) {
		if !v.apps[name].unread {
			continue
		}
		e, _ := l.record.of(name)
		a := *v.apps[name]
		if a.App, a.unread = l.asRecorded(a.App, e.state); a.unread {
			continue
		}
		a.App = v.branch.Governed(a.App)
		next.apps[name], found = &a, append(found, name)
	}
	if len(found) > 0 {
		l.publish(v, &next, found, false)
	}
}
