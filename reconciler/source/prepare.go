package source

import (
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// App is one app of the users' branch with its recorded state.
type App struct {
	rollout.App
	Head      strategies.Head
	Promotion *rollout.Promotion // nil without a usable file
	Calendar  rollout.Calendar
	State     rollout.State
}

// Trust holds facts that only the reconciler knows. Without them, Prepare takes a conflict and an ignored promotion
// file's reason from the record.
type Trust struct {
	IsKnown    bool
	Refused    *rollout.InvalidError // why the newest commit is not followed
	Newest     rollout.Commit        // with Refused
	Conflict   *rollout.InvalidError // another app owns an object of the head
	Unapproved *rollout.InvalidError // promotion of the head's release
	Unknown    error                 // why the head is unknown
}

// Prepare returns an app for Gather. A head that the app may not follow has an error and no render.
func Prepare(b *Branch, app rollout.App, s rollout.State, head strategies.Head, p Promotion, t Trust) App {
	if !t.IsKnown {
		p.By = head.Commit
		if p.File != nil && p.File.Forbidden == "" {
			p.File.Forbidden = s.Ignored
		}
		if h := s.Held; h.Is(rollout.HeldContested) && h.Commit == head.Commit.ID {
			t.Conflict = &rollout.InvalidError{Reason: h.Reason, Msg: h.Message}
		}
	}
	switch {
	case t.Refused != nil:
		head.Commit, head.Err = t.Newest, t.Refused
	case head.Err != nil:
	case t.Conflict != nil:
		head.Err = t.Conflict
	case p.Err != nil:
		head.Commit, head.Err = p.By, p.Err
	case t.Unapproved != nil:
		head.Commit, head.Err = p.By, t.Unapproved
	case head.Render == nil && t.Unknown != nil: // outdated render for a possible rollback
		head.Err = t.Unknown
	}
	if head.Err != nil {
		head.Render = nil
	}
	return App{App: app, Head: head, Promotion: p.File, Calendar: b.Calendar(app.Name), State: s}
}
