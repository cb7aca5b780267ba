// Package cohort decides which apps may take a change of files that many apps read. Decisions follow from the present
// contents and records, so no progress is stored.
package cohort

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Member is an app that reads a shared file.
type Member struct {
	App  string
	Tier int
	// Changed lists the files that differ between the app's commit and the head, sorted.
	Changed []string
	// Unproven lists the files that differ between the last version that served and the head, sorted.
	Unproven []string
	Since    time.Time // when that version became healthy, or zero
	Entered  time.Time // when the app took its commit
	Doing    string    // a verb for users, such as "is Progressing"
	Rejected []string  // files of Unproven whose content at the head was in a rejected version; sorted
	Tried    []string  // files of Changed that the app once had with the head's content; sorted
	Stuck    bool      // the app is unhealthy, or cannot start a release now; other apps come first
	Apart    bool      // the app neither waits nor proves a file, for example in a first deployment
	Gone     bool      // the app left Git: it still runs, but never enters
	Same     bool      // no object differs at the head, so the app does not wait for Changed
	key      string    // sorts waiting apps
}

// World answers questions about the head and the apps.
type World interface {
	Readers(file string) []string
	ID(file string) string // identifies the file's content at the head
	Member(app string) (Member, error)
}

// Change is a set of changed shared files and their readers. Two files belong to one Change if an app waits for both.
type Change struct {
	settings rollout.SharedChanges
	files    map[string]*shared
	order    []*Member // waiting apps, in the order of entry
	ranks    map[string][]place
}

type place struct {
	file string
	rank int
}

type shared struct {
	id               string
	readers, entered int
	proven           []time.Time // the ends of the soak times of healthy apps, sorted
	blocker          *Member     // the first of the apps that took the file but have not proven it, or nil
	rejected         []string    // apps that rejected the file, sorted
}

// Find returns the change that an app waits for, or nil if each changed file has at most settings.Over readers.
func Find(settings rollout.SharedChanges, w World, app Member) (c *Change, err error) {
	c = &Change{settings: settings, files: map[string]*shared{}, ranks: map[string][]place{}}
	waiting := map[string]*Member{}
	for open := c.sharedOf(w, app); len(open) > 0; open = open[1:] {
		file := open[0]
		if c.files[file] != nil {
			continue
		}
		readers := w.Readers(file)
		f := &shared{id: rollout.ShortID(w.ID(file)), readers: len(readers)}
		c.files[file] = f
		for _, name := range readers {
			m, failed := w.Member(name)
			if err = cmp.Or(err, failed); failed != nil { // World is asked about all apps, despite errors
				continue
			}
			if _, known := waiting[name]; f.add(&m, file, settings.Soak) && !known {
				waiting[name] = &m
				open = append(open, c.sharedOf(w, m)...)
			}
		}
		slices.Sort(f.rejected)
		slices.SortFunc(f.proven, time.Time.Compare)
	}
	if err != nil || len(c.files) == 0 {
		return nil, err
	}
	c.rank(w, waiting)
	return c, nil
}

func (c *Change) sharedOf(w World, m Member) (files []string) {
	for _, file := range m.Changed {
		if c.files[file] == nil && len(w.Readers(file)) > c.settings.Over {
			files = append(files, file)
		}
	}
	return files
}

func (f *shared) add(m *Member, file string, soak time.Duration) (waits bool) {
	waits = has(m.Changed, file)
	if m.Apart || m.Same && waits {
		return false
	}
	if has(m.Rejected, file) {
		f.rejected = append(f.rejected, m.App)
	}
	tried := waits && has(m.Tried, file)
	if !waits || m.Gone && tried {
		f.entered++
	}
	switch {
	case waits && !tried:
	case waits || has(m.Unproven, file) || m.Since.IsZero():
		if b := f.blocker; b == nil || cmp.Or(m.Entered.Compare(b.Entered), strings.Compare(m.App, b.App)) < 0 {
			f.blocker = m
		}
	default:
		f.proven = append(f.proven, m.Since.Add(soak))
	}
	return waits && !m.Gone
}

func has(files []string, file string) bool {
	_, is := slices.BinarySearch(files, file)
	return is
}

// rank sorts the waiting apps: first apps that had the change before, last the stuck apps. It breaks ties by tier, then
// by a digest of content and app name. A file's ranks start at the number of apps that took the file.
func (c *Change) rank(w World, waiting map[string]*Member) {
	first := c.Files()[0]
	salt := first + " " + w.ID(first) + " "
	for name, m := range waiting {
		turn := "1"
		switch {
		case len(m.Tried) > 0:
			turn = "0"
		case m.Stuck:
			turn = "2"
		}
		m.key = fmt.Sprintf("%s%03d", turn, m.Tier) + rollout.Digest([]byte(salt+name), 8)
		c.order = append(c.order, m)
	}
	slices.SortFunc(c.order, func(a, b *Member) int { return strings.Compare(a.key, b.key) })
	next := map[string]int{}
	for _, m := range c.order {
		for _, file := range m.Changed {
			if f := c.files[file]; f != nil {
				c.ranks[m.App] = append(c.ranks[m.App], place{file, f.entered + next[file]})
				next[file]++
			}
		}
	}
}

// Entry says whether an app may take a shared change.
type Entry struct {
	rollout.Place // place for the file that delays the app or, if Open, for the first file
	Open          bool
	Waits         string    // the condition, for users; "" if Open
	Hold          string    // text of Waits for the record, without details that change
	Due           time.Time // when the condition may change by itself, or zero
	Asks          bool      // only a user can let apps enter, and this app is next

	Release rollout.Hash   // the head's release
	Commit  rollout.Commit // the head's commit

	Held rollout.HeldReason // why an app waits for a stage; "" for a cohort
	Note string             // about an open entry, for users
	// Versions lists, by cluster, the releases that need approval for a stage. It is set only if this cluster proposes
	// the approval.
	Versions map[string]rollout.Hash
}

// Message returns "release h1-7b4e2a91d0 of 5832d1e by Ann waits for cohort 2 of 3" or the like, for the record.
func (e Entry) Message() string {
	what := "the change"
	if e.Release != "" {
		what = "release " + string(e.Release)
	}
	return fmt.Sprintf("%s of %s by %s waits for %s", what, e.Commit.Short(), e.Commit.Author, e.Hold)
}

// Differs reports whether an app must decide again after entry o became e. Otherwise, the app waits until o.Due.
func (e Entry) Differs(o Entry) bool {
	isSooner := !e.Due.IsZero() && (o.Due.IsZero() || e.Due.Before(o.Due))
	return e.Open != o.Open || e.Asks != o.Asks || e.Hold != o.Hold || isSooner
}

// Files returns the shared files, sorted.
func (c *Change) Files() []string { return slices.Sorted(maps.Keys(c.files)) }

// Apps returns the waiting apps in the order of their entry.
func (c *Change) Apps() []string {
	return rollout.Mapped(c.order, func(m *Member) string { return m.App })
}

// Entry says whether an app may take the change at a time. The app must be in an open cohort of each shared file. Only
// the first app that must wait asks a user.
func (c *Change) Entry(app string, now time.Time) Entry {
	e := c.entry(app, now)
	if e.Asks {
		next, _ := rollout.Find(c.order, func(m *Member) bool { return !c.entry(m.App, now).Open })
		e.Asks = next.App == app
	}
	return e
}

func (c *Change) entry(app string, now time.Time) (e Entry) {
	e.Open = true
	for i, p := range c.ranks[app] {
		if next := c.at(p, app, now); i == 0 || e.Open && !next.Open {
			e = next
		}
	}
	return e
}

func (c *Change) at(p place, app string, now time.Time) Entry {
	file, f := p.file, c.files[p.file]
	sizes := c.settings.Sizes(f.readers)
	i := slices.IndexFunc(sizes, func(size int) bool { return p.rank < size })
	e := Entry{Place: rollout.Place{File: file, ID: f.id, Cohort: i + 1, Of: len(sizes)}}
	needed, done := 0, sort.Search(len(f.proven), func(i int) bool { return f.proven[i].After(now) })
	if i > 0 {
		needed = sizes[i-1]
	}
	why := ""
	switch {
	case len(f.rejected) > 0 && !slices.Contains(f.rejected, app):
		why, e.Asks = fmt.Sprintf("%q rejected", f.rejected[0]), true
	case done >= needed:
		e.Open = true
		return e
	case len(f.proven) >= needed:
		why, e.Due = "earlier apps soak with", f.proven[needed-1]
	case f.blocker != nil:
		b := f.blocker
		why, e.Due = fmt.Sprintf("%q %s with", b.App, b.Doing), b.Entered.Add(c.settings.Timeout)
		if b.Entered.IsZero() {
			e.Due, e.Asks = time.Time{}, true
		} else if !now.Before(e.Due) {
			why, e.Asks = fmt.Sprintf("%q has not finished within %s with", b.App, rollout.ShortSpan(c.settings.Timeout)), true
		}
	default:
		why = fmt.Sprintf("%d of %d apps have", f.entered, needed)
	}
	e.Waits = fmt.Sprintf("cohort %d of %d: %s the same change (%s)", e.Cohort, e.Of, why, file)
	if e.Hold = e.Waits; !e.Asks {
		e.Hold = fmt.Sprintf("cohort %d of %d (%s)", e.Cohort, e.Of, file)
	}
	return e
}
