package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
	"gitrollout.dev/gitrollout/strategies/fleet"
)

// mostBack limits the commits that an app searches for a proven commit.
const mostBack = 500

// A waiting app decides again when other clusters' records change, or at the latest after afterLost. If data was still
// being read, it decides after afterUnread.
const afterUnread, afterLost = 5 * time.Second, 10 * time.Minute

// Stages decides which commit each app of a cluster follows, from fleet.yaml and the previous stage's records.
type Stages struct {
	Reader *Reader
	Peers  Peers
	// Line returns the first-parent commits from "from" to the branch's head, oldest first. If "from" is too old, it
	// returns nil.
	Line func(b *Branch, app, from string) ([]Snapshot, error)
	// Inputs identifies an app's content in a cluster at a commit.
	Inputs func(cluster, app, commit string) (fleet.Inputs, error)
	Render func(app rollout.App, commit string) (*rollout.Render, error)
	Tree   func(commit string) (Snapshot, error)
	Spread func(time.Duration) time.Duration

	lists   map[string]candidates // by app
	readers map[string]*Reader    // of heads, by cluster
}

type candidates struct {
	from, head, main string
	all              []string // newest first
	oldest           string   // of the searched commits
}

// Of returns the head that an app may follow instead of the branch's head. The entry says whether the app may take this
// head. A nil entry allows the head. While required data is being read, the entry leaves the record unchanged. If the
// recorded commit is unavailable and the entry is not open, Of returns an error or a head with an error.
func (x *Stages) Of(
	b *Branch, app rollout.App, s rollout.State, head strategies.Head, p *rollout.Promotion, now time.Time,
) (strategies.Head, *cohort.Entry, error) {
	if b.Unstaged == nil && b.Stage() == nil || head.Err != nil || head.Render == nil ||
		head.Render.Commit.ID == s.Source || len(s.Soaked) == 0 && isBack(s, head.Render) {
		return head, nil, nil
	}
	was, err := x.Render(app, s.Source)
	var unknown error
	if err == nil && was.Digest == head.Render.Digest {
		return head, nil, nil
	}
	e, isBare := &cohort.Entry{Held: rollout.HeldStage, Due: now.Add(x.Spread(afterLost))}, isGone(err)
	w := &stageWorld{Stages: x, b: b, app: app, s: s, head: head.Render, was: was}
	hasRun, failed := fleet.HasRun(w, b.Cluster, s, head.Render.Commit.ID)
	switch {
	case hasRun:
		return head, nil, nil
	case s.Release != nil && s.Stable != nil && s.Stable.Hash == head.Render.Release():
		// The head has the stable version, so the app returns to that version at once. The head's other content waits.
		e.Waits, e.Commit = "the end of the release in flight", head.Commit
		return head, e, nil
	case failed != nil || errors.Is(err, ErrNotReady):
		e.Waits, e.Due, unknown = "the app's earlier commits", now.Add(afterUnread), failed
	case b.Unstaged != nil:
		e.Held, e.Waits = rollout.HeldFleet, "usable stages: "+b.Unstaged.Error()
		e.Hold = e.Waits
	default:
		if head, unknown = w.choose(e, p, head, now); unknown != nil {
			e.Waits, e.Due = "the records of other clusters", now.Add(afterUnread)
		}
	}
	if e.Commit = head.Commit; head.Render != nil {
		if e.Release = head.Render.Version(); len(e.Versions) > 0 {
			e.Versions[b.Cluster] = e.Release
		}
	}
	e.Open = e.Open || opens(p, s, e.Release, e.Commit.ID)
	switch {
	case e.Open || !isBare:
		return head, e, nil
	case unknown == nil:
		head.Render, head.Err = nil, &rollout.InvalidError{Reason: e.Held, Msg: "waits for " + e.Hold}
	}
	return head, e, unknown
}

// choose completes the entry. It returns the head that the app may follow or must wait for.
func (w *stageWorld) choose(e *cohort.Entry, p *rollout.Promotion, head strategies.Head, now time.Time) (
	next strategies.Head, err error,
) {
	place := fleet.Place{Fleet: w.b.Fleet, Cluster: w.b.Cluster, App: w.app.Name}
	if place.Approved, err = w.approved(p); err != nil {
		return head, err
	}
	c, err := place.Choose(w, w.s, now)
	versions := map[string]rollout.Hash{}
	for i := 0; i < len(c.Proposes) && err == nil; i++ {
		var in fleet.Inputs
		if in, err = w.Inputs(c.Proposes[i], c.Commit); in.Version != "" || c.Proposes[i] == w.b.Cluster {
			versions[c.Proposes[i]] = in.Version
		}
	}
	if next = head; err == nil && c.Commit != w.head.Commit.ID {
		next, err = w.headAt(c.Commit)
	}
	if err != nil {
		return head, err
	}
	e.Open, e.Note, e.Waits, e.Hold, e.Versions = c.Waits == "", c.Note, c.Waits, c.Hold, versions
	return next, nil
}

func (w *stageWorld) headAt(commit string) (head strategies.Head, err error) {
	tree, err := w.Tree(commit)
	if err != nil {
		return head, err
	}
	head.Commit = tree.Commit()
	if head.Commit.Author, err = w.author(commit); err != nil {
		return head, err
	}
	if head.Render, head.Err = w.Render(w.app, commit); head.Err == nil {
		head.Err = w.allow(tree, head.Render)
	}
	if head.Err != nil {
		head.Render = nil
	} else if named := *head.Render; named.Commit.Author != head.Commit.Author {
		named.Commit, head.Render = head.Commit, &named
	}
	if errors.Is(head.Err, ErrNotReady) {
		return head, head.Err
	}
	return head, nil
}

// author returns the author of the oldest candidate with the commit's content, because later candidates may have
// changed only comments.
func (w *stageWorld) author(commit string) (string, error) {
	all, err := w.Candidates()
	oldest := w.lists[w.app.Name].oldest
	for _, before := range append(all[slices.Index(all, commit)+1:len(all):len(all)], oldest) {
		is, failed := w.Inputs(w.b.Cluster, commit)
		was, unread := w.Inputs(w.b.Cluster, before)
		if err = cmp.Or(err, failed, unread); err != nil || !is.Same(was) {
			break
		}
		commit = before
	}
	if err != nil || commit == oldest {
		return rollout.UnknownAuthor, err
	}
	tree, err := w.Tree(commit)
	if err != nil {
		return "", err
	}
	return tree.Commit().Author, nil
}

// allow returns why an app may not take a render. No check may stop a rollback.
func (w *stageWorld) allow(tree Snapshot, r *rollout.Render) error {
	if w.s.Release != nil && w.s.Stable != nil {
		stable, err := w.Render(w.app, w.s.Stable.Commit)
		if errors.Is(err, ErrNotReady) || err == nil && stable.Digest == r.Digest {
			return err
		}
	}
	if len(r.Unopened) == 0 {
		return w.Reader.allow(tree, r)
	}
	return &rollout.InvalidError{Reason: rollout.HeldUndecryptable, File: r.Unopened[0],
		Msg: "cannot be decrypted at commit " + tree.Commit().Short(),
		Fix: "add the file's key to the Secret of the app's decryption.secretRef"}
}

type stageWorld struct {
	*Stages
	b         *Branch
	app       rollout.App
	s         rollout.State
	head, was *rollout.Render // "was" is nil if the app's commit is not available
}

// Candidates implements fleet.World. The newest candidate is the head's commit, because this commit last changed the
// app.
func (w *stageWorld) Candidates() ([]string, error) {
	c := candidates{from: w.s.Source, head: w.head.Commit.ID, main: w.b.Tree.Commit().ID}
	if known := w.lists[w.app.Name]; known.from == c.from && known.head == c.head && known.main == c.main {
		return known.all, nil
	}
	from, files := c.head, append(slices.Clone(w.head.Files), rollout.ConfigPath(w.b.Cluster))
	if w.was != nil {
		from, files = c.from, append(files, w.was.Files...)
	}
	line, err := w.Line(w.b, w.app.Name, from)
	if err != nil {
		return nil, err
	}
	line = line[max(0, len(line)-mostBack-1):]
	ids := rollout.Mapped(line, func(s Snapshot) string { return s.Commit().ID })
	c.all, c.oldest = []string{c.head}, append(ids, "")[0]
	for i := slices.Index(ids, c.head) - 1; i > 0; i-- {
		changes, err := Differ(line[i-1], line[i], files...)
		if err != nil {
			return nil, err
		}
		if changes {
			c.all = append(c.all, ids[i])
		}
	}
	if w.lists == nil {
		w.lists, w.readers = map[string]candidates{}, map[string]*Reader{}
	}
	w.lists[w.app.Name] = c
	return c.all, nil
}

// Differ reports whether a file differs between two commits. After an error, it returns true.
func Differ(a, b rollout.Tree, files ...string) (bool, error) {
	for _, file := range files {
		was, had, err := a.Lookup(file)
		is, has, failed := b.Lookup(file)
		if err = cmp.Or(err, failed); err != nil || had != has || was.ID != is.ID {
			return true, err
		}
	}
	return false, nil
}

// Record implements fleet.World.
func (w *stageWorld) Record(cluster string) (s rollout.State, problem string, err error) {
	states, err := w.Peers.States(cluster)
	switch {
	case err == nil:
		s, _ = states(w.app.Name)
	case errors.Is(err, ErrNoBranch):
		s.Reason, err = rollout.OneLine(err.Error()), nil
	case !errors.Is(err, ErrNotReady):
		return s, rollout.OneLine(err.Error()), nil
	}
	return s, "", err
}

// Inputs implements fleet.World. In older commits, the app may have a former name.
func (w *stageWorld) Inputs(cluster, commit string) (in fleet.Inputs, err error) {
	for _, name := range append([]string{w.app.Name}, strings.Fields(w.app.Formerly)...) {
		if in, err = w.Stages.Inputs(cluster, name, commit); err != nil || in != (fleet.Inputs{}) {
			return in, err
		}
	}
	return in, nil
}

// Lists implements fleet.World. If a configuration is unusable, Lists returns true.
func (w *stageWorld) Lists(cluster string) bool {
	r := cmp.Or(w.readers[cluster], NewReader(cluster, nil))
	w.readers[cluster] = r
	return slices.ContainsFunc(append([]string{w.app.Name}, strings.Fields(w.app.Formerly)...), func(name string) bool {
		_, is, err := r.Listed(w.b.Tree, name)
		return is || err != nil
	})
}

// approved returns the commit that a promotion file approves. It returns "" if the commit's content has run in the
// cluster. It also returns "" if the version was rejected, unless the head has this version. A retry also approves,
// because it replaces the approval in the file.
func (w *stageWorld) approved(p *rollout.Promotion) (string, error) {
	if w.b.Stage().Approve != rollout.ApproveMerge || p == nil || p.Commit == "" || p.Through != rollout.ThroughEntry {
		return "", nil
	}
	ran, err := fleet.HasRun(w, w.b.Cluster, w.s, p.Commit)
	if err != nil || ran {
		return "", err
	}
	r, err := w.Render(w.app, p.Commit)
	_, rejected := w.s.IsRejected(p.Release)
	switch {
	case errors.Is(err, ErrNotReady):
		return "", err
	case err != nil || p.Barred || !p.Says(rollout.Promote, r.Version()) && !p.Says(rollout.Retry, r.Version()),
		rejected && p.Release != w.head.Version():
		return "", nil
	}
	return p.Commit, nil
}

// InputsAt identifies an app's content in the reader's cluster at a commit. It decrypts nothing. Content that cannot be
// built equals no other content.
func (r *Reader) InputsAt(tree Snapshot, name string) (in fleet.Inputs, err error) {
	if _, exists, err := tree.Lookup(rollout.ConfigPath(r.cluster)); err != nil || !exists { // a newer cluster
		return in, err
	}
	app, listed, err := r.Listed(tree, name)
	var built *rollout.Render
	if err == nil && listed {
		app.Sealed = true
		built, err = r.renderer.Render(tree, app, tree.Commit())
	}
	switch {
	case rollout.IsInvalid(err):
		return fleet.Inputs{Files: "unusable at " + tree.Commit().ID}, nil
	case err != nil || !listed:
		return in, err
	}
	text := strings.Builder{}
	fmt.Fprintf(&text, "%+v\n", app)
	for _, file := range built.Files {
		entry, _, err := tree.Lookup(file)
		if err != nil {
			return in, err
		}
		fmt.Fprintln(&text, file, entry.ID)
	}
	in.Version = built.Version()
	if in.Files = rollout.Digest([]byte(text.String()), 16); len(built.Unopened) == 0 {
		in.Objects = built.Digest
	}
	return in, nil
}

// Listed returns an app of a commit's configuration. It caches the apps of the last commit.
func (r *Reader) Listed(tree Snapshot, name string) (app rollout.App, is bool, err error) {
	of := r.listed.Load()
	if id := tree.Commit().ID; of == nil || of.commit != id {
		config, err := r.ConfigAt(tree)
		if err != nil {
			return app, false, err
		}
		all, _, err := render.FindAll(tree, config)
		if err != nil {
			return app, false, err
		}
		of = &listing{id, make(map[string]rollout.App, len(all))}
		for _, a := range all {
			of.apps[a.Name] = a
		}
		r.listed.Store(of)
	}
	app, is = of.apps[name]
	return app, is, nil
}
