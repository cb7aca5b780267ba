package source

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// Entries decides which apps may take the shared changes of one head. Call Forget before the first use.
type Entries struct {
	Branch *Branch
	Record func(app string) rollout.State
	Head   func(app rollout.App) (head strategies.Head, ready bool)
	Files  func(app string) []string  // of the newest render, sorted; also for unlisted apps
	ReadBy func(file string) []string // the apps whose Files have the file
	// Reads reports whether Files still lacks an app's files. If the app has no render at this head, its files come
	// from the recorded commit's render.
	Reads func() bool
	// Render returns an app's render of a commit. The render may be packed.
	Render func(app rollout.App, commit string) (*rollout.Render, error)
	// Tree returns a commit. While the commit is being fetched, the error wraps ErrNotReady.
	Tree func(commit string) (rollout.Tree, error)

	of      *Branch
	others  map[string]map[string]bool // whether a commit and the head of "of" differ, by commit and file
	changes map[string]*cohort.Change  // by waiting app; see Forget
	members map[string]cohort.Member
}

// Forget drops the cached answers. Call it after records, renders or Branch change.
func (e *Entries) Forget() {
	e.changes, e.members = map[string]*cohort.Change{}, map[string]cohort.Member{}
	if e.of != e.Branch {
		e.of, e.others = e.Branch, map[string]map[string]bool{}
	}
}

// Waiting returns the change that an app waits for, or nil.
func (e *Entries) Waiting(app string) (*cohort.Change, error) {
	settings, change := e.Branch.Config.Shared, e.changes[app]
	if change != nil || settings.Over == 0 || len(e.Branch.Apps) <= settings.Over {
		return change, nil
	}
	m, err := e.Member(app)
	if err != nil || m.Apart || m.Same {
		return nil, err
	}
	if change, err = cohort.Find(settings, e, m); err != nil || change == nil {
		return nil, err
	}
	for _, name := range change.Apps() {
		e.changes[name] = change
	}
	return change, nil
}

// Of returns the entry for the shared change at an app's head, or nil if the app needs no entry.
func (e *Entries) Of(app rollout.App, s rollout.State, head strategies.Head, p *rollout.Promotion, now time.Time) (
	*cohort.Entry, error,
) {
	settings := e.Branch.Config.Shared
	if settings.Over == 0 || len(e.Branch.Apps) <= settings.Over || head.Err != nil || head.Render == nil ||
		head.Render.Commit.ID == s.Source || s.Source == "" || s.Release != nil && s.Stable == nil {
		return nil, nil
	}
	if isBack(s, head.Render) {
		_, rejected := s.IsRejected(head.Render.Release())
		was, err := e.Render(app, s.Source)
		if rejected || isGone(err) || err == nil && changesOnlyVersion(was, head.Render) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	changed, err := e.differing(app.Name, s.Source)
	isForeign := func(file string) bool { return !strings.HasPrefix(file, app.Path+"/") }
	isShared := func(file string) bool { return len(e.ReadBy(file)) > settings.Over }
	switch {
	case isGone(err): // the app follows the head
		return nil, nil
	case err != nil:
		return nil, err
	case slices.ContainsFunc(changed, isForeign) && e.Reads():
		return nil, fmt.Errorf("another app at commit %s %w", e.Branch.Tree.Commit().Short(), ErrNotReady)
	}
	// Shared files that return to earlier content need no entry, but Waiting would return a change for them.
	shared := slices.DeleteFunc(changed, func(file string) bool { return !isShared(file) })
	var before []string
	if s.Entered != nil && len(shared) > 0 {
		before, err = e.had(app.Name, s.Entered.Was, shared)
	}
	if err != nil || len(before) == len(shared) { // decided without other apps' records
		return nil, err
	}
	change, err := e.Waiting(app.Name)
	if err != nil || change == nil {
		return nil, err
	}
	entry := change.Entry(app.Name, now)
	entry.Release, entry.Commit = head.Render.Version(), head.Commit
	entry.Open = entry.Open || opens(p, s, entry.Release, entry.Commit.ID)
	return &entry, nil
}

func isBack(s rollout.State, head *rollout.Render) bool {
	h := head.Release()
	_, rejected := s.IsRejected(h)
	return rejected || h != "" && slices.Contains(s.Verified, h) && (s.Stable == nil || s.Stable.Hash != h)
}

// changesOnlyVersion reports whether two renders differ only in workloads with a Rollout.
func changesOnlyVersion(was, head *rollout.Render) bool {
	a, b := was.ByRef(), head.ByRef()
	for _, spec := range slices.Concat(was.Specs, head.Specs) {
		delete(a, spec.Workload.Ref())
		delete(b, spec.Workload.Ref())
	}
	return reflect.DeepEqual(a, b)
}

// Member implements cohort.World.
func (e *Entries) Member(name string) (m cohort.Member, err error) {
	if known, is := e.members[name]; is {
		return known, nil
	}
	m.App = name
	s := e.Record(name)
	i, listed := slices.BinarySearchFunc(e.Branch.Apps, name, func(a rollout.App, name string) int {
		return strings.Compare(a.Name, name)
	})
	m.Gone = !listed
	if m.Apart = s.Source == "" || s.Stable == nil && s.Release != nil; m.Apart {
		return m, nil
	}
	if m.Changed, err = e.differing(name, s.Source); isGone(err) {
		m.Apart = true
		return m, nil
	} else if err != nil {
		return m, err
	}
	m.Unproven, m.Doing = m.Changed, "is "+string(s.Shown())
	if s.Entered != nil {
		m.Entered = s.Entered.At
	}
	switch {
	case s.Release != nil:
		m.Entered, m.Since = s.Release.Since, s.Stable.Since
		if m.Unproven, err = e.differing(name, s.Stable.Commit); isGone(err) {
			m.Since, err = time.Time{}, nil
		}
	case s.Shown() != rollout.Healthy:
	case s.Entered != nil && !s.IsNewSince(m.Entered):
		if m.Since = s.Entered.Well; m.Since.IsZero() {
			m.Doing = "is not healthy yet"
		}
	case s.Stable == nil:
		m.Since = time.Unix(0, 0)
	default:
		m.Since = s.Stable.Since
	}
	if err == nil && (len(m.Changed) > 0 || s.Phase == rollout.Aborting) {
		for _, r := range s.Rejected {
			had, failed := e.had(name, r.Commit, m.Unproven)
			m.Rejected, err = append(m.Rejected, had...), cmp.Or(err, failed)
		}
		slices.Sort(m.Rejected)
	}
	if err == nil && len(m.Changed) > 0 && listed {
		e.waiting(&m, s.Named(e.Branch.Apps[i]), s)
	}
	if err == nil && len(m.Changed) > 0 && s.Entered != nil {
		m.Tried, err = e.had(name, s.Entered.Commit, m.Changed)
	}
	if err == nil {
		e.members[name] = m
	}
	return m, err
}

func (e *Entries) waiting(m *cohort.Member, app rollout.App, s rollout.State) {
	m.Tier = 1
	if entry := e.Branch.Config.EntryOf(app); entry != nil {
		m.Tier = entry.Tier
	}
	head, ready := e.Head(app)
	m.Stuck = head.Err != nil || s.Unhealthy != "" || s.Phase == rollout.Stalled || s.Rollback != nil && s.Rollback.Late ||
		s.Held != nil && !s.Held.Is(rollout.HeldCohort, rollout.HeldShared, rollout.HeldStage, rollout.HeldHook)
	if r := head.Render; ready && r != nil {
		_, rejected := s.IsRejected(r.Release())
		m.Stuck = m.Stuck || rejected
		at, err := e.Render(app, s.Source)
		m.Same = r.Commit.ID == s.Source || err == nil && at.Digest == r.Digest
	}
}

// had returns the given files that are equal at a commit and at the head, or none if the commit is missing.
func (e *Entries) had(app, commit string, files []string) (same []string, err error) {
	others, err := e.differing(app, commit)
	if isGone(err) {
		return nil, nil
	}
	for _, file := range files {
		if _, other := slices.BinarySearch(others, file); !other && err == nil {
			same = append(same, file)
		}
	}
	return same, err
}

func isGone(err error) bool { return err != nil && !errors.Is(err, ErrNotReady) }

func (e *Entries) differing(app, commit string) (files []string, err error) {
	for _, file := range e.Files(app) {
		differs, err := e.differs(commit, file)
		if err != nil {
			return nil, err
		}
		if differs {
			files = append(files, file)
		}
	}
	return files, nil
}

// Readers implements cohort.World.
func (e *Entries) Readers(file string) []string { return e.ReadBy(file) }

// ID implements cohort.World.
func (e *Entries) ID(file string) string {
	entry, _, _ := e.Branch.Tree.Lookup(file) // e.differs has already read the file
	return entry.ID
}

func (e *Entries) differs(commit, file string) (differs bool, err error) {
	if differs, known := e.others[commit][file]; known {
		return differs, nil
	}
	tree, err := e.Tree(commit)
	if err != nil {
		return false, err
	}
	if differs, err = Differ(tree, e.Branch.Tree, file); err != nil {
		return false, err
	}
	if e.others[commit] == nil {
		e.others[commit] = map[string]bool{}
	}
	e.others[commit][file] = differs
	return differs, nil
}
