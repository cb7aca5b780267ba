package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// poller fetches Git and publishes an immutable view. Any goroutine may call the method current, but only one goroutine
// calls the other methods.
type poller struct {
	*Options
	preparer
	reader *source.Reader
	touch  func(app string)
	looked func() // after each successful fetch

	seen        atomic.Pointer[gitView]
	config      *rollout.Config // last readable configuration
	hasRead     bool
	unreachable bool
	invalid     error  // problem at the last successful fetch
	judged      string // commit and reason of the refusal that was judged last
}

type gitView struct {
	branch  *source.Branch
	refused *rollout.Refusal
	keys    string
	record  string // state branch's head when "apps" was made
	apps    map[string]*appView
	gone    []string // recorded apps outside the users' branch; sorted
	behind  error    // why the view is outdated and no app advances
	failed  bool
	line    []Snapshot // commits since the last view; nil if unknown
}

func (v *gitView) main() string { return v.branch.Tree.Commit().ID }

// isStill reports whether Git and the record are unchanged. Without a configuration, it returns false, because apps
// then depend on recorded commits, which may arrive later.
func (v *gitView) isStill(next *gitView) bool {
	return v != nil && v.branch == next.branch && v.record == next.record && v.keys == next.keys &&
		v.branch.Config != nil && v.behind == nil && next.behind == nil && v.refused == nil && next.refused == nil
}

func (v *gitView) settings(cluster string) *rollout.Config {
	if v != nil && v.branch.Config != nil {
		return v.branch.Config
	}
	return &rollout.Config{
		Interval: 30 * time.Second, StateBranch: rollout.StateBranch(cluster), AutoRevert: rollout.AutoRevertPropose,
	}
}

func (v *gitView) promotionOf(app string) source.Promotion {
	if v == nil || v.apps[app] == nil {
		return source.Promotion{}
	}
	return v.apps[app].promotion
}

type appView struct {
	rollout.App
	promotion source.Promotion
	calendar  rollout.Calendar
	removed   *rollout.InvalidError // why Git no longer lists the app, or nil
	removedBy rollout.Commit        // zero if unknown
	unread    bool                  // folder and permissions are not known yet
	prunes    bool                  // if the app is removed, its objects are deleted
	refused   *rollout.InvalidError // the newest commit is refused, and would change the app
	head      *strategies.Head      // if set, replaces the branch's head
}

func (a *appView) named(s rollout.State) *appView {
	n := *a
	n.App = s.Named(a.App)
	return &n
}

func (a *appView) same(b *appView) bool {
	return a == b || b != nil && a.App == b.App && a.promotion.ID == b.promotion.ID && a.calendar.Equal(b.calendar) &&
		sameText(a.removed, b.removed) && a.unread == b.unread && a.prunes == b.prunes &&
		sameText(a.refused, b.refused) && (a.head == nil) == (b.head == nil)
}

func sameText(a, b *rollout.InvalidError) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// current returns nil before the first fetch.
func (l *poller) current() *gitView { return l.seen.Load() }

// look fetches Git and publishes a view. If the commit is unreadable, the last view stays, and no app advances.
func (l *poller) look(ctx context.Context) error {
	_, pushes := l.states.at()
	fetching, end := l.begin(ctx, report.PartFetch, "")
	heads, err := l.Repository.Fetch(fetching)
	end(err)
	answers := l.unreachable
	if l.unreachable = err != nil; err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer l.looked()
	was := l.current()
	next, err := l.viewOf(ctx, was, heads)
	if err != nil {
		if was != nil {
			last := *was
			last.behind, last.failed = err, true
			l.seen.Store(&last)
		}
		return err
	}
	first := !l.hasRead
	touched, errs := l.readRecord(ctx, heads, pushes)
	if next.record, _ = l.states.at(); was.isStill(next) {
		next = was
	} else {
		l.findApps(was, next)
		errs = errors.Join(next.behind, errs, l.holdUnverified(ctx, was, next, heads.Refused))
	}
	if first && l.hasRead { // before, passes skipped all apps
		touched = append(touched, sortedKeys(next.apps)...)
	}
	l.publish(was, next, touched, answers)
	for _, u := range next.branch.InvalidNames {
		errs = errors.Join(errs, u.Err)
	}
	return errs
}

// tellProblem reports invalid input in Git. If "away" is not zero, it also reports that fetches have failed since this
// time.
func (l *poller) tellProblem(err error, away time.Time) {
	if away.IsZero() {
		l.invalid, err = errors.Join(append(l.states.unreadable(), err)...), nil
	} else {
		err = fmt.Errorf("reading Git has failed since %s, so new commits are not seen: %w",
			away.UTC().Format("2006-01-02 15:04:05 UTC"), err)
	}
	text := ""
	if err = errors.Join(err, l.invalid); err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", ";\n")
	}
	v := l.current()
	l.Tell(report.Report{Problem: &text, Staged: v != nil && (v.branch.Fleet != nil || v.branch.Unstaged != nil)})
}

func (l *poller) viewOf(ctx context.Context, was *gitView, heads rollout.Heads) (*gitView, error) {
	next := &gitView{refused: heads.Refused, keys: heads.Keys}
	// "followed" means that this head is the first trusted head. The last view used its untrusted head only for the
	// configuration.
	followed := was != nil && was.refused != nil && was.refused.Blind && (heads.Refused == nil || !heads.Refused.Blind)
	changed, unknown := l.readPolicy(heads)
	if was != nil && was.main() == heads.Main && !followed && !changed && !was.failed {
		next.branch, next.behind = was.branch, errors.Join(was.branch.Behind, unknown)
		return next, nil
	}
	tree, err := snapshotOf(ctx, l.Repository, heads.Main)
	if err == nil {
		next.branch, err = l.reader.Open(tree, l.config)
	}
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", rollout.ShortID(heads.Main), err)
	}
	if next.branch.Behind == nil {
		l.config = next.branch.Config
	}
	next.behind = errors.Join(next.branch.Behind, unknown)
	if was != nil && was.main() != heads.Main {
		if next.line, err = l.Past.Between(ctx, was.main(), heads.Main); err != nil {
			next.line = nil
		}
	}
	l.judged = ""
	return next, nil
}

func (l *poller) readPolicy(heads rollout.Heads) (changed bool, err error) {
	if l.Options.Policy == nil {
		return false, nil
	}
	p, err := l.Options.Policy(heads)
	if err != nil {
		return false, fmt.Errorf("policy: %w", err)
	}
	return l.reader.Policy.Swap(p) != p, nil
}

func (l *poller) readRecord(ctx context.Context, heads rollout.Heads, pushes int) (touched []string, err error) {
	head, _ := l.states.at()
	if heads.State == head && l.hasRead {
		return l.states.read(heads, pushes, nil)
	}
	states := &source.States{}
	if heads.State != "" { // otherwise the first transition creates the branch
		tree, err := snapshotOf(ctx, l.Repository, heads.State)
		if err != nil {
			return nil, fmt.Errorf("read state commit %s: %w", rollout.ShortID(heads.State), err)
		}
		if err := l.verifyState(tree); err != nil {
			return nil, err
		}
		if states, err = source.ReadStates(tree); err != nil {
			return nil, err
		}
	}
	touched, err = l.states.read(heads, pushes, states)
	l.hasRead = l.hasRead || err == nil
	return touched, err
}

func (l *poller) findApps(was, next *gitView) {
	next.apps = make(map[string]*appView, len(next.branch.Apps))
	for _, a := range next.branch.Apps {
		next.apps[a.Name] = l.withDecisions(was, next, appView{App: a})
	}
	for _, name := range l.states.names() {
		if next.apps[name] == nil {
			next.apps[name] = l.withDecisions(was, next, l.removedApp(was, next, name))
			next.gone = append(next.gone, name)
		}
	}
}

// withDecisions adds an app's promotion and calendar. Views share unchanged apps to save memory, but not if the head is
// refused, because holdUnverified changes apps.
func (l *poller) withDecisions(was, next *gitView, a appView) *appView {
	e, _ := l.states.of(a.Name)
	a.promotion = next.branch.Promotion(e.state.Named(a.App))
	if before := was.promotionOf(a.Name); before.ID == a.promotion.ID {
		a.promotion.By = before.By
	} else if was != nil {
		a.promotion.By = changed(next.line, a.promotion.Path)
	}
	if a.promotion.File != nil {
		a.promotion.File.Author = a.promotion.By.Author
	}
	a.calendar = next.branch.Calendar(a.Name)
	if was != nil && next.refused == nil {
		b := was.apps[a.Name]
		if a.same(b) && a.promotion == b.promotion && a.removedBy == b.removedBy {
			return b
		}
	}
	return new(a)
}

func (l *poller) removedApp(was, next *gitView, name string) (a appView) {
	e, _ := l.states.of(name)
	a.App = rollout.App{Name: name, Path: e.state.Path}
	if next.branch.Config == nil {
		l.viewOfRecord(&a, next.branch)
		return a
	}
	if was != nil && was.apps[name] != nil {
		a.App, a.removedBy = was.apps[name].App, was.apps[name].removedBy
	}
	if entry := next.branch.Config.EntryOf(a.App); entry != nil {
		if listed, err := entry.App(a.Path); err == nil && listed.Name == name {
			a.App = next.branch.WithProject(listed)
		}
	}
	a.removed = next.branch.Removed(a.App)
	a.removedBy = cmp.Or(changed(next.line, a.Path, rollout.ConfigPath(l.Cluster)), a.removedBy)
	a.prunes = next.branch.Prunes(a.App)
	return a
}

func (l *poller) publish(was, next *gitView, touched []string, answers bool) {
	moved, apps := was == nil || was.main() != next.main(), next.apps
	if was == next {
		apps = nil
	}
	if was != nil && was.keys != next.keys {
		l.approvals.forget()
	}
	l.seen.Store(next)
	isAll := was == nil || was.branch.Policy != next.branch.Policy || (was.behind == nil) != (next.behind == nil) ||
		was.keys != next.keys || was.settings(l.Cluster).APIVersion != next.settings(l.Cluster).APIVersion ||
		!was.branch.Fleet.Same(next.branch.Fleet) || fmt.Sprint(was.branch.Unstaged) != fmt.Sprint(next.branch.Unstaged)
	var listed []*rollout.App
	for _, name := range sortedKeys(apps) {
		a := apps[name]
		if isAll || !a.same(was.apps[name]) {
			touched = append(touched, name)
		}
		if moved && a.removed == nil && !a.unread && l.mayHandle(name) { // an unread app has no namespace yet
			listed = append(listed, &a.App)
		}
	}
	if moved {
		l.renders.look(next.branch.Tree, next.line, listed)
		touched = append(touched, l.states.proposers()...) // to compare proposals with the head
		touched = append(touched, l.peers.waiting()...)
	} else {
		l.renders.retry(next)
	}
	if was != nil && was != next {
		for name := range was.apps {
			if next.apps[name] == nil {
				touched = append(touched, name) // the pass deletes cached values
			}
		}
	}
	if answers { // apps may have failed while Git was unreachable
		touched = append(touched, l.states.names()...)
	}
	touched = slices.DeleteFunc(touched, func(name string) bool { return !l.mayHandle(name) })
	slices.Sort(touched)
	l.renders.prepare(l.states, next, touched)
	if was != next || len(touched) > 0 {
		l.cohorts.wake()
	}
	if l.hasRead { // before decisions use the configuration
		head, _ := l.states.at()
		l.Tell(report.Report{Config: next.branch.Config, Head: head})
	}
	for _, name := range putFirst(slices.Compact(touched), l.states.isInFlight) {
		l.touch(name)
	}
}

func (l *poller) bring(ctx context.Context) (any bool, err error) {
	v := l.current()
	if v == nil {
		return false, nil
	}
	asked := l.approvals.answer(ctx)
	traces, failed := l.readHistory(ctx, v)
	wanted := l.fetcher.missing()
	if len(wanted) == 0 {
		return asked || traces, failed
	}
	gone, err := l.Repository.Bring(ctx, wanted)
	Heartbeat(ctx)
	var foreign []string
	if err == nil {
		here := slices.DeleteFunc(slices.Clone(wanted), func(id string) bool { return slices.Contains(gone, id) })
		foreign, err = l.Past.Outside(ctx, v.main(), here)
		Heartbeat(ctx)
	}
	l.fetcher.brought(wanted, gone, foreign, err)
	l.renders.queue.hasten(l.leaving(v, wanted))
	l.renders.read(func() { l.renders.made++ }) // so that cohorts.refresh reads the new commits
	l.cohorts.wake()
	if err != nil {
		l.unreachable = true // apps become due when Git answers
		return true, fmt.Errorf("fetch %d commits named in the apps' records: %w", len(wanted), err)
	}
	l.locate(v)
	return true, failed
}

// leaving returns the apps that probably roll back, because their folder changed or a user aborted. It considers only
// apps whose recorded commit is in the sorted list.
func (l *poller) leaving(v *gitView, commits []string) map[string]bool {
	apps := map[string]bool{}
	for name, a := range v.apps {
		e, _ := l.states.of(name)
		if _, is := slices.BinarySearch(commits, e.state.Source); !is || !l.states.isInFlight(name) {
			continue
		}
		if tree, held := l.Repository.Held(e.state.Source); held {
			was, _, _ := tree.Lookup(a.Path)
			is, _, _ := v.branch.Tree.Lookup(a.Path)
			apps[name] = was.ID != is.ID || a.promotion.File != nil && a.promotion.File.Decision == rollout.Abort
		}
	}
	return apps
}

func snapshotOf(ctx context.Context, repo Repository, commit string) (Snapshot, error) {
	if tree, held := repo.Held(commit); held {
		return tree, nil
	}
	gone, err := repo.Bring(ctx, []string{commit})
	if err != nil {
		return nil, err
	}
	if len(gone) > 0 {
		return nil, fmt.Errorf("commit %s is not in the repository", rollout.ShortID(commit))
	}
	tree, held := repo.Held(commit)
	if !held {
		return nil, fmt.Errorf("commit %s was fetched, but the mirror lacks it", rollout.ShortID(commit))
	}
	return tree, nil
}
