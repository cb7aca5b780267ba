package reconciler

import (
	"context"
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
	stateID      string // blob id of the state file that state was read from
	promotion    *rollout.Promotion
	promotionID  string
	promotionErr error
	renders      map[string]*rollout.Render // by commit: source and stable
	pending      *rollout.State             // a retreat that Git has not recorded yet
	broken       error                      // the state file cannot be read: hands off
	dirty        bool
	due          time.Time
	failures     int // passes in a row that ended with an error
}

// gather brings what is known of Git up to date and marks the apps that it
// concerns. An unreachable remote leaves everything as it was known.
func (r *Reconciler) gather(ctx context.Context) error {
	heads, err := r.Repository.Fetch(ctx)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	if heads.Main != r.heads.Main || r.main == nil {
		if err := r.gatherMain(ctx, heads.Main); err != nil {
			return err
		}
		r.heads.Main = heads.Main
	}
	if heads.State != r.heads.State || !r.stateKnown {
		if err := r.gatherState(ctx, heads.State); err != nil {
			return err
		}
		r.heads.State, r.stateKnown = heads.State, true
	}
	r.heads.Proposals = heads.Proposals
	return nil
}

func (r *Reconciler) gatherMain(ctx context.Context, head string) error {
	snapshot, err := r.Repository.Snapshot(ctx, head)
	if err != nil {
		return fmt.Errorf("read commit %s: %w", rollout.ShortID(head), err)
	}
	apps, err := r.readConfig(snapshot)
	if err != nil {
		// Apps go on as of the last configuration that could be read; without
		// one nothing is known of any app.
		r.configErr = err
		return err
	}
	r.configErr, r.main = nil, snapshot
	r.setApps(apps)
	r.renderHeads(snapshot, apps)
	for _, a := range apps {
		r.readPromotion(snapshot, r.apps[a.Name])
	}
	return nil
}

// readConfig reads the configuration and finds the apps. The configuration is
// parsed again only if its file changed.
func (r *Reconciler) readConfig(tree Snapshot) ([]rollout.App, error) {
	path := rollout.ConfigPath(r.Cluster)
	entry, found, err := tree.Lookup(path)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", path, err)
	}
	if !found {
		return nil, &rollout.InvalidError{File: path, Msg: "does not exist", Fix: "commit a Config there, or name another cluster with --cluster"}
	}
	config := r.config
	if config == nil || entry.ID != r.configID {
		data, err := tree.ReadBlob(entry.ID)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if config, err = rollout.ParseConfig(path, data); err != nil {
			return nil, err
		}
	}
	apps, err := render.FindApps(tree, config)
	if err != nil {
		return nil, err
	}
	r.config, r.configID = config, entry.ID
	return apps, nil
}

// setApps makes r.apps hold what Git lists. An app that left Git stays known,
// without a head, so that its objects are reported and left alone.
func (r *Reconciler) setApps(listed []rollout.App) {
	names := map[string]bool{}
	for _, a := range listed {
		names[a.Name] = true
		known := r.apps[a.Name]
		if known == nil || known.App != a {
			fresh := &app{App: a, dirty: true, renders: map[string]*rollout.Render{}}
			if known != nil {
				fresh.state, fresh.stateID, fresh.broken = known.state, known.stateID, known.broken
			}
			r.apps[a.Name] = fresh
		}
	}
	for name, a := range r.apps {
		if !names[name] {
			r.orphan(a)
		}
	}
}

// orphan gives an app that Git no longer lists the reason for which it is left
// alone. A typo in a glob must not take a service down.
func (r *Reconciler) orphan(a *app) {
	err := &rollout.InvalidError{
		File: rollout.ConfigPath(r.Cluster), Field: "apps",
		Msg: fmt.Sprintf("no longer lists %s (%s); its objects are left as they are", a.Name, a.Path),
		Fix: fmt.Sprintf("list it again, or remove it for good: kubectl delete all,cm,secret -A -l %s=%s, then delete %s on the state branch",
			rollout.LabelApp, a.Name, rollout.StatePath(a.Name)),
	}
	if a.head.Err == nil || a.head.Err.Error() != err.Error() {
		a.head, a.dirty = strategies.Head{Err: err}, true
	}
}

// renderHeads renders every app as of the head, several at once. An app whose
// objects come out the same keeps the head it had, so that the commit it names
// is the one that last changed it.
func (r *Reconciler) renderHeads(snapshot Snapshot, apps []rollout.App) {
	forEach(r.Workers, apps, func(a rollout.App) {
		known := r.apps[a.Name]
		built, err := r.Renderer.Render(snapshot, a, snapshot.Commit())
		switch was := known.head; {
		case err != nil && was.Err != nil && was.Err.Error() == err.Error():
		case err == nil && was.Render != nil && was.Render.Digest == built.Digest:
		default:
			known.head = strategies.Head{Commit: snapshot.Commit(), Render: built, Err: err}
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
	a.promotion, a.promotionID, a.promotionErr, a.dirty = nil, entry.ID, nil, true
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
	if head == "" { // no branch yet: it is created with the first transition
		r.state, r.clusterFile = nil, false
		return nil
	}
	snapshot, err := r.Repository.Snapshot(ctx, head)
	if err != nil {
		return fmt.Errorf("read state commit %s: %w", rollout.ShortID(head), err)
	}
	if err := r.checkCluster(snapshot); err != nil {
		return err
	}
	files, err := stateFiles(snapshot)
	if err != nil {
		return fmt.Errorf("list states: %w", err)
	}
	for name, id := range files {
		a := r.apps[name]
		if a == nil {
			a = &app{App: rollout.App{Name: name}, renders: map[string]*rollout.Render{}}
			r.apps[name] = a
		}
		if a.stateID != id {
			r.readState(snapshot, a, id)
		}
		if a.head.Err == nil && a.head.Render == nil {
			a.Path = a.state.Path
			r.orphan(a)
		}
	}
	r.state = snapshot
	return nil
}

func (r *Reconciler) readState(tree Snapshot, a *app, id string) {
	path := rollout.StatePath(a.Name)
	data, err := tree.ReadBlob(id)
	a.stateID, a.dirty, a.broken = id, true, nil
	if err == nil {
		var s *rollout.State
		if s, err = rollout.ParseState(path, data); err == nil {
			a.state, a.pending = *s, nil
			return
		}
	}
	a.broken = fmt.Errorf("state file %s: %w", path, err)
	r.Log.Error("app is left alone: its state cannot be read", "app", a.Name, "error", a.broken)
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
		r.clusterFile = false
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
			Fix: "point --context at the right cluster, or delete the state branch to start afresh",
		}
	}
	r.clusterFile = true
	return nil
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
