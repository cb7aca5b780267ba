package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// app is what the reconciler knows of one app. All of it can be had again.
type app struct {
	rollout.App
	head         strategies.Head
	state        rollout.State
	stateID      string // blob id of the state file that was read last
	calendar     rollout.Calendar
	promotion    *rollout.Promotion
	promotionID  string
	promotionErr error
	approval     *approval                  // nil until somebody asks who approved the promotion
	refused      *rollout.InvalidError      // why the head of the users' branch is not followed
	renders      map[string]*rollout.Render // by commit: source and stable
	runs         []rollout.AnalysisRun      // state.Analyses with what was measured since
	routing      routing                    // what the cluster was made to route
	pending      *strategies.Decision       // a retreat that was applied, and that Git has not recorded yet
	told         bool                       // about pending
	reverted     string                     // head of the users' branch that a revert was pushed on, or tried
	broken       error                      // the state file cannot be read: hands off
	isOrphan     bool                       // Git does not list it any more
	dirty        bool
	due          time.Time
	failures     int // passes in a row that ended with an error
}

// gather brings what is known of Git up to date and marks the apps that it
// concerns. An unreachable remote leaves everything as it was known.
func (r *Reconciler) gather(ctx context.Context) error {
	heads, err := r.fetch(ctx)
	if err != nil {
		r.unreachable = true
		return fmt.Errorf("fetch: %w", err)
	}
	if r.unreachable {
		r.unreachable = false
		for _, a := range r.apps {
			a.dirty = a.dirty || a.failures > 0 // what it waited to try again may have been Git
		}
	}
	var errs []error
	// A head that was only for reading the configuration is now to be followed.
	seen := r.heads.Refused != nil && r.heads.Refused.Blind && (heads.Refused == nil || !heads.Refused.Blind)
	if heads.Main != r.heads.Main || seen {
		r.judged = ""
		if err := r.gatherMain(ctx, heads.Main); err != nil {
			errs = append(errs, err) // apps go on as of the last commit that could be read
		}
	}
	if r.config != nil && (heads.State != r.heads.State || !r.stateKnown) {
		if err := r.gatherState(ctx, heads.State); err != nil {
			errs = append(errs, err)
		}
	}
	r.heads.Proposals = heads.Proposals
	if heads.Keys != r.heads.Keys {
		for _, a := range r.apps {
			a.approval, a.dirty = nil, true
		}
		r.heads.Keys = heads.Keys
	}
	if r.config != nil && r.stateKnown {
		r.distrust(ctx, heads.Refused)
		r.heads.Refused = heads.Refused
	}
	return errors.Join(errs...)
}

func (r *Reconciler) gatherMain(ctx context.Context, head string) error {
	snapshot, err := r.Repository.Snapshot(ctx, head)
	if err != nil {
		return fmt.Errorf("read commit %s: %w", rollout.ShortID(head), err)
	}
	config, err := r.configAt(snapshot)
	var apps []rollout.App
	if err == nil {
		apps, err = render.FindApps(snapshot, config)
	}
	if err != nil {
		if r.config != nil { // a freeze stops what goes on
			err = errors.Join(err, r.readCalendars(snapshot))
		}
		return err
	}
	r.main, r.config, r.heads.Main = snapshot, config, head
	r.setApps(apps)
	r.renderHeads(ctx, snapshot, apps)
	for _, a := range apps {
		r.readPromotion(snapshot, r.apps[a.Name])
	}
	return r.readCalendars(snapshot)
}

// setApps makes r.apps hold what Git lists. An app that left Git stays known,
// without a head, so that its objects are reported and left alone.
func (r *Reconciler) setApps(listed []rollout.App) {
	names := map[string]bool{}
	for _, a := range listed {
		names[a.Name] = true
		known := r.apps[a.Name]
		if known == nil {
			known = newApp(a)
			r.apps[a.Name] = known
		}
		if known.App != a {
			known.App, known.head, known.dirty = a, strategies.Head{}, true
		}
		known.isOrphan = false
	}
	for name, a := range r.apps {
		switch {
		case names[name]:
		case a.isOnRecord():
			r.orphan(a)
		default:
			delete(r.apps, name)
			r.gone = append(r.gone, name)
		}
	}
}

func newApp(a rollout.App) *app {
	return &app{App: a, dirty: true, renders: map[string]*rollout.Render{}}
}

// isOnRecord reports whether the app has a file on the state branch, or a
// retreat that is to be written to it.
func (a *app) isOnRecord() bool { return a.state.Phase != "" || a.broken != nil || a.pending != nil }

// orphan gives an app that Git no longer lists the reason for which it is left
// alone. A typo in a glob must not take a service down.
func (r *Reconciler) orphan(a *app) {
	err := &rollout.InvalidError{
		File: rollout.ConfigPath(r.Cluster), Field: "apps",
		Msg: fmt.Sprintf("no longer lists %s (%s); its objects are left as they are", a.Name, a.Path),
		Fix: fmt.Sprintf("list it again, or remove it for good: kubectl delete all,cm,secret -A -l %s=%s, then delete %s on the state branch",
			rollout.LabelApp, a.Name, rollout.StatePath(a.Name)),
	}
	if !a.isOrphan {
		a.isOrphan, a.head, a.dirty = true, strategies.Head{Err: err}, true
	}
}

// renderHeads renders every app as of the head, several at once. An app whose
// objects come out the same keeps the head it had, so that the commit it names
// is the one that last changed it.
func (r *Reconciler) renderHeads(ctx context.Context, snapshot Snapshot, apps []rollout.App) {
	commit := snapshot.Commit()
	forEach(r.Workers, apps, func(a rollout.App) {
		known := r.apps[a.Name]
		built, err := r.render(ctx, snapshot, a, commit)
		switch was := known.head; {
		case err != nil && was.Err != nil && was.Err.Error() == err.Error():
		case err == nil && was.Render != nil && was.Render.Digest == built.Digest:
			same := *built // but perhaps from other files
			same.Commit = was.Commit
			known.head.Render = &same
		default:
			known.head = strategies.Head{Commit: commit, Render: built, Err: err}
			known.dirty = true
		}
	})
}

// readPromotion reads an app's promotion file if it changed. One that cannot be
// understood holds the app, like any other bad input.
func (r *Reconciler) readPromotion(tree Snapshot, a *app) {
	path := rollout.PromotionPath(r.Cluster, a.Name)
	entry, found, err := tree.Lookup(path)
	if err == nil && entry.ID == a.promotionID && found == (a.promotionID != "") {
		return
	}
	a.promotion, a.promotionID, a.promotionErr, a.approval, a.dirty = nil, entry.ID, nil, nil, true
	if err == nil && found {
		var data []byte
		if data, err = tree.ReadBlob(entry.ID); err == nil {
			a.promotion, err = rollout.ParsePromotion(path, data)
		}
	}
	a.promotionErr = err
	if a.promotion != nil {
		a.promotion.Author = tree.Commit().Author
	}
}

// gatherState reads the state files that changed on the state branch.
func (r *Reconciler) gatherState(ctx context.Context, head string) error {
	files := map[string]string{}
	r.clusterFile = false
	if head != "" { // else it is created with the first transition
		snapshot, err := r.Repository.Snapshot(ctx, head)
		if err != nil {
			return fmt.Errorf("read state commit %s: %w", rollout.ShortID(head), err)
		}
		if err := r.believe(snapshot); err != nil {
			return err
		}
		if err := r.checkCluster(snapshot); err != nil {
			return err
		}
		if files, err = stateFiles(snapshot); err != nil {
			return fmt.Errorf("list states: %w", err)
		}
		for name, id := range files {
			a := r.apps[name]
			if a == nil {
				a = newApp(rollout.App{Name: name})
				r.apps[name] = a
			}
			r.readState(snapshot, a, id)
			if a.head.Err == nil && a.head.Render == nil {
				a.Path = a.state.Path
				r.orphan(a)
			}
		}
	}
	for name, a := range r.apps {
		if files[name] == "" {
			r.forget(a)
		}
	}
	r.heads.State, r.stateKnown = head, true
	return nil
}

// believe refuses a state branch that somebody else has written to. All apps are
// concerned: a commit on top of a foreign one would vouch for it.
func (r *Reconciler) believe(tree Snapshot) error {
	if r.Believe == nil {
		return nil
	}
	if err := r.Believe(tree); err != nil {
		commit := tree.Commit()
		return &rollout.InvalidError{
			File: "branch " + r.config.StateBranch,
			Msg:  fmt.Sprintf("commit %s by %s is not believed: %v; no release moves on", rollout.ShortID(commit.ID), commit.Author, err),
			Fix:  "put the branch back to the last signed commit, or vouch for it as it is: gitrollout state repair APP --signing-key FILE",
		}
	}
	return nil
}

// forget starts an app afresh whose file is no longer on the state branch. One
// that Git does not list either is gone for good.
func (r *Reconciler) forget(a *app) {
	if !a.isOnRecord() {
		return
	}
	a.state, a.stateID, a.pending, a.broken, a.dirty = rollout.State{}, "", nil, nil, true
	if a.isOrphan {
		delete(r.apps, a.Name)
		r.gone = append(r.gone, a.Name)
	}
}

// readState reads one app's file if it is another one than last time.
func (r *Reconciler) readState(tree Snapshot, a *app, id string) {
	if a.stateID == id {
		return
	}
	path := rollout.StatePath(a.Name)
	var s *rollout.State
	data, err := tree.ReadBlob(id)
	if err == nil {
		s, err = rollout.ParseState(path, data)
	}
	if err != nil {
		a.stateID, a.broken = id, fmt.Errorf("state file %s: %w", path, err)
		r.Log.Error("app is left alone: its state cannot be read", "app", a.Name, "error", a.broken)
		return
	}
	if a.broken != nil || !s.Equal(&a.state) { // else it is what this process wrote
		a.state, a.pending, a.broken, a.dirty = *s, nil, nil, true
	}
	a.stateID = id
}

// stateFiles lists apps/*/*.yaml: name to blob id.
func stateFiles(tree Snapshot) (map[string]string, error) {
	files := map[string]string{}
	groups, err := readDirIfAny(tree, "apps")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		entries, err := readDirIfAny(tree, "apps/"+group.Name)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name, ".yaml"); ok && e.Kind == rollout.File {
				files[name] = e.ID
			}
		}
	}
	return files, nil
}

func readDirIfAny(tree Snapshot, path string) ([]rollout.Entry, error) {
	entry, found, err := tree.Lookup(path)
	if err != nil || !found || entry.Kind != rollout.Dir {
		return nil, err
	}
	return tree.ReadDir(path)
}

// checkCluster refuses a state branch that is for another cluster: it would be
// taken for the truth about this one.
func (r *Reconciler) checkCluster(tree Snapshot) error {
	entry, found, err := tree.Lookup(rollout.ClusterPath)
	if err != nil || !found {
		return err
	}
	data, err := tree.ReadBlob(entry.ID)
	if err != nil {
		return fmt.Errorf("read %s: %w", rollout.ClusterPath, err)
	}
	c, err := rollout.ParseCluster(data)
	if err != nil {
		return fmt.Errorf("state branch: %w", err)
	}
	if c.Cluster != r.Cluster || c.UID != r.UID {
		return &rollout.InvalidError{
			File: rollout.ClusterPath, Field: "uid",
			Msg: fmt.Sprintf("the state branch is for cluster %s (%s), this is %s (%s)", c.Cluster, c.UID, r.Cluster, r.UID),
			Fix: "point --context at the right cluster, or, if that one is gone: gitrollout state adopt",
		}
	}
	r.clusterFile = true
	return r.noteWriter(c.Writer)
}

// noteWriter compares the writer in Git with this process. Two that write in
// turns are safe, because every push says where the branch must be, but they
// are one too many: an exclusive one stands down, and any other says so.
func (r *Reconciler) noteWriter(w rollout.Writer) error {
	taken := r.epoch > 0 && w.Epoch > r.epoch && w.ID != r.Writer
	r.writer = w
	switch {
	case !taken:
		return nil
	case r.Exclusive:
		return fmt.Errorf("%w: %s writes to %s since epoch %d, this is %s of epoch %d", ErrDeposed, w.ID, r.config.StateBranch, w.Epoch, r.Writer, r.epoch)
	default:
		r.Log.Warn("another gitrollout writes to the state branch, too: run one, or several with --leader-elect",
			"writer", w.ID, "epoch", w.Epoch, "this", r.Writer, "branch", r.config.StateBranch)
		r.epoch = 0 // the next commit takes it back
		return nil
	}
}

// forEach calls do for each item, at most workers at once, and returns when all
// are done.
func forEach[T any](workers int, items []T, do func(T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, workers)
	for _, item := range items {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			do(item)
		}()
	}
	wg.Wait()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
