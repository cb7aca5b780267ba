package source

import (
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/render/policy"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// App is one app of the users' branch with its recorded state.
type App struct {
	rollout.App
	Head      strategies.Head
	Promotion *rollout.Promotion // nil without a usable file
	Calendar  rollout.Calendar
	State     rollout.State
	Stage     *rollout.Stage // of the cluster, or nil
	Entry     *cohort.Entry  // nil if no shared change or stage applies
	Place     *rollout.Place
	Barred    error // why the policy bars the head's author; no effect if the head equals State.Source
}

// Trust holds an app's facts that only the reconciler knows. Without IsKnown, Prepare reads from the record why the app
// has a conflict or waits, and why its promotion file is ignored.
type Trust struct {
	IsKnown    bool
	Refused    *rollout.InvalidError // why the newest commit is not followed
	Newest     rollout.Commit        // the newest commit, if Refused is set
	Conflict   *rollout.InvalidError // another app owns an object of the head
	Unapproved *rollout.InvalidError // why the promotion of the head's release does not count
	Unknown    error                 // why the head is not known yet
	Entry      *cohort.Entry
}

// Prepare returns an app for Gather. A head with an error has no render.
func Prepare(b *Branch, app rollout.App, s rollout.State, head strategies.Head, p Promotion, t Trust) (a App) {
	if !t.IsKnown {
		p.By = head.Commit
		if p.File != nil && p.File.Forbidden == "" {
			p.File.Forbidden, p.File.Barred = s.Ignored, strings.Contains(s.Ignored, ", rule "+rollout.ByAuthor)
		}
		isFirst := s.Source == "" && s.Held.Is(rollout.HeldStage, rollout.HeldFleet)
		if h := s.Held; (h.Is(rollout.HeldContested) || isFirst) && h.Commit == head.Commit.ID {
			t.Conflict = &rollout.InvalidError{Reason: h.Reason, Msg: h.Message}
		}
		t.Entry = recordedEntry(b, s, head, p.File)
		if r, waits := head.Render, awaited(b); t.Entry == nil && r != nil && waits != "" && mayTryOlder(s, r) &&
			s.Source != "" && r.Commit.ID != s.Source && !isBack(s, r) {
			t.Entry = &cohort.Entry{Held: rollout.HeldStage, Waits: waits, Commit: head.Commit}
			t.Entry.Release = r.Version()
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
	case head.Render == nil && t.Unknown != nil: // an outdated render stays usable for a rollback
		head.Err = t.Unknown
	case head.Render != nil && (s.Stable == nil || head.Render.Release() != s.Stable.Hash): // a rollback begins no release
		a.Barred = policy.CheckAuthor(b.Tree, head.Render, head.Render.Commit.Author, b.Policy)
	}
	if head.Err != nil {
		head.Render = nil
	}
	a = App{App: app, Head: head, Promotion: p.File, Calendar: b.Calendar(app.Name), State: s, Stage: b.Stage(),
		Barred: a.Barred}
	if head.Render != nil && a.Barred == nil || s.Source == "" {
		a.Entry = t.Entry
	}
	if e := s.Entered; a.Entry != nil {
		a.Place = &a.Entry.Place
	} else if e != nil && e.File != "" && idOf(b, e.File) == e.ID {
		a.Place = &e.Place
	}
	return a
}

func awaited(b *Branch) string {
	switch i := b.Fleet.StageOf(b.Cluster); {
	case i > 0:
		return "the stage before"
	case i == 0 && b.Fleet.Stages[0].Approve == rollout.ApproveMerge:
		return "an approval for stage " + b.Fleet.Stages[0].Name
	}
	return ""
}

// mayTryOlder reports whether an app's release in flight, or its last rejected release, may be older than the head.
func mayTryOlder(s rollout.State, head *rollout.Render) bool {
	isDegraded := s.Phase == rollout.Degraded && s.Held == nil && s.Stable != nil
	return s.Release != nil || isDegraded && s.Stable.Hash != head.Release()
}

func idOf(b *Branch, file string) string {
	entry, _, _ := b.Tree.Lookup(file) // after an error, pages omit the cohort
	return rollout.ShortID(entry.ID)
}

// recordedEntry returns the recorded wait for a cohort or stage at this head, or nil.
func recordedEntry(b *Branch, s rollout.State, head strategies.Head, p *rollout.Promotion) *cohort.Entry {
	h := s.Held
	isStaged := h.Is(rollout.HeldStage, rollout.HeldFleet)
	if !isStaged && !h.Is(rollout.HeldCohort, rollout.HeldShared) || head.Render == nil {
		return nil
	}
	what, waits, _ := strings.Cut(h.Message, " waits for ")
	e := &cohort.Entry{Waits: waits, Hold: waits, Commit: rollout.Commit{ID: h.Commit, Author: h.Author},
		Release: head.Render.Version(), Asks: h.Is(rollout.HeldShared)}
	switch words := strings.Fields(what); {
	case isStaged: // the wait may be for an older commit
		if e.Held = h.Reason; len(words) > 1 && words[0] == "release" {
			e.Release = rollout.Hash(words[1])
		}
	case h.Commit != head.Commit.ID && !strings.HasPrefix(what, "release "+string(e.Release)+" "):
		return nil // the reconciler has not read this head yet
	default:
		_, _ = fmt.Sscanf(waits, "cohort %d of %d", &e.Cohort, &e.Of) // format of cohort.Entry
		e.File = strings.TrimSuffix(waits[strings.LastIndex(waits, "(")+1:], ")")
		e.ID = idOf(b, e.File)
	}
	e.Open = opens(p, s, e.Release, h.Commit)
	return e
}

// opens reports whether a promotion file lets a waiting change into the app, or aborts the change. A file without a
// commit promotes only a version that the app does not have yet.
func opens(p *rollout.Promotion, s rollout.State, version rollout.Hash, commit string) bool {
	isOf := func(r *rollout.Release) bool { return r != nil && r.Hash == version }
	isNew := !isOf(s.Release) && !isOf(s.Stable) // if not, the app has the version, and an abort opens nothing
	isIt := func() bool { return p.Commit == "" && isNew || p.Commit == commit && p.At != "" }
	return p.Says(rollout.Abort, version) && isNew && s.Release == nil && s.Stable != nil ||
		p.Says(rollout.Promote, version) && p.Digest != s.Spent && isIt() &&
			(p.Through == rollout.ThroughEntry || p.OpensAll(version))
}
