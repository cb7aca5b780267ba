package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// The packages of this program meet here.
var (
	_ reconciler.Repository = (*repository)(nil)
	_ reconciler.Snapshot   = snapshot{}
	_ reconciler.Renderer   = (*render.Renderer)(nil)
	_ reconciler.Observer   = (*cluster.Client)(nil)
	_ reconciler.Applier    = applier{}
	_ reconciler.Forge      = (*forge.Worker)(nil)
)

// repository is a git.Repo as the loop sees it. The name of the state branch is
// itself in Git, so repository reads it from each new commit and opens the
// mirror again if it is another one.
type repository struct {
	options git.Options
	trust   *trust // nil: every commit is followed

	mu   sync.Mutex
	repo *git.Repo
	seen string // the commit whose configuration was read
}

func openRepository(ctx context.Context, options git.Options) (*repository, error) {
	repo, err := git.Open(ctx, options)
	if err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	return &repository{options: options, repo: repo}, nil
}

func (r *repository) mirror() *git.Repo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.repo
}

// Fetch is reconciler.Repository's.
func (r *repository) Fetch(ctx context.Context) (reconciler.Heads, error) {
	heads, err := r.mirror().Fetch(ctx)
	if err != nil {
		return reconciler.Heads{}, err
	}
	main, refused, err := r.trust.follow(ctx, r.mirror(), heads.Main)
	if err != nil {
		return reconciler.Heads{}, err
	}
	if main != r.seen {
		moved, err := r.followStateBranch(ctx, main)
		if err != nil {
			return reconciler.Heads{}, err
		}
		if moved {
			again, err := r.mirror().Fetch(ctx)
			if err != nil {
				return reconciler.Heads{}, err
			}
			heads.State, heads.Proposals = again.State, again.Proposals // a newer head is judged next time
		}
		r.seen = main
	}
	return reconciler.Heads{Main: main, State: heads.State, Proposals: heads.Proposals, Refused: refused, Keys: r.trust.version()}, nil
}

// followStateBranch opens the mirror again if the configuration names another
// state branch. A configuration that is missing or cannot be read changes
// nothing; whoever uses it reports that.
func (r *repository) followStateBranch(ctx context.Context, commit string) (bool, error) {
	tree, err := r.Snapshot(ctx, commit)
	if err != nil {
		return false, err
	}
	config, err := readConfig(tree, r.options.Cluster)
	if err != nil || config.StateBranch == r.mirror().StateBranch() {
		return false, nil
	}
	options := r.options
	options.StateRef = config.StateBranch
	again, err := git.Open(ctx, options)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	r.repo = again
	r.mu.Unlock()
	return true, nil
}

// Snapshot is reconciler.Repository's.
func (r *repository) Snapshot(ctx context.Context, commit string) (reconciler.Snapshot, error) {
	s, err := r.mirror().Snapshot(ctx, commit)
	if err != nil {
		return nil, err
	}
	return snapshot{s}, nil
}

// Has tells that Snapshot reads a commit without the network.
func (r *repository) Has(commit string) bool { return r.mirror().Has(commit) }

// Bring fetches commits with one request, and returns those that are lost.
func (r *repository) Bring(ctx context.Context, commits []string) (missing []string, err error) {
	return r.mirror().Bring(ctx, commits)
}

// Push is reconciler.Repository's. A push that has begun is finished even when
// the program is told to stop.
func (r *repository) Push(ctx context.Context, updates []reconciler.Update) (map[string]string, error) {
	ctx, cancel := outlive(ctx)
	defer cancel()
	sent := make([]git.Update, len(updates))
	for i, u := range updates {
		sent[i] = git.Update{
			Ref: u.Branch, Base: u.Old, Parent: u.Parent, Edits: u.Edits, Message: u.Message, When: u.When,
			Delete: u.Delete, Force: !u.Delete && u.Old != "" && u.Parent != u.Old,
		}
	}
	ids, err := r.mirror().Push(ctx, sent...)
	if errors.Is(err, git.ErrConflict) {
		return nil, lostRace{err}
	}
	if err != nil {
		return nil, err
	}
	commits := make(map[string]string, len(updates))
	for i, u := range updates {
		switch {
		case ids[i] != "":
			commits[u.Branch] = ids[i]
		case !u.Delete: // it was so already
			commits[u.Branch] = u.Old
		}
	}
	return commits, nil
}

// lostRace is git's ErrConflict with the loop's identity.
type lostRace struct{ error }

func (l lostRace) Is(target error) bool { return target == reconciler.ErrConflict }
func (l lostRace) Unwrap() error        { return l.error }

// snapshot is a git.Snapshot in rollout's nouns.
type snapshot struct{ *git.Snapshot }

// Commit is reconciler.Snapshot's.
func (s snapshot) Commit() rollout.Commit {
	c := s.Snapshot.Commit()
	author := fmt.Sprintf("%s <%s>", c.AuthorName, c.AuthorEmail)
	if c.AuthorEmail == git.Self.Email {
		author = "a merged proposal" // merged without a merge commit: Git does not say by whom
	}
	return rollout.Commit{
		ID: c.ID, Author: author,
		When: rollout.Second(c.AuthorTime), Subject: c.Subject,
	}
}

// Lookup is render.Tree's.
func (s snapshot) Lookup(path string) (rollout.Entry, bool, error) {
	e, ok, err := s.Snapshot.Lookup(path)
	return entry(e), ok, err
}

// ReadDir is render.Tree's.
func (s snapshot) ReadDir(path string) ([]rollout.Entry, error) {
	listed, err := s.Snapshot.ReadDir(path)
	if err != nil {
		return nil, err
	}
	entries := make([]rollout.Entry, len(listed))
	for i, e := range listed {
		entries[i] = entry(e)
	}
	return entries, nil
}

func entry(e git.Entry) rollout.Entry {
	return rollout.Entry{Name: e.Name, ID: e.ID, Kind: rollout.EntryKind(e.Kind)}
}

// applier is the writing half of a cluster.Client. A write that has begun is
// finished even when the program is told to stop.
type applier struct{ client *cluster.Client }

// Check is reconciler.Applier's. What the API server will not accept however
// often it is asked is wrong input.
func (a applier) Check(ctx context.Context, app string, objects []rollout.Object) error {
	err := a.client.Check(ctx, app, objects)
	var refused *cluster.Error
	if errors.As(err, &refused) && !refused.Temporary() && refused.Reason != cluster.Unexpected {
		return &rollout.InvalidError{Msg: "the cluster refuses " + refused.Error()}
	}
	return err
}

// Apply is reconciler.Applier's. That an object is somebody else's is wrong input.
func (a applier) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	ctx, cancel := outlive(ctx)
	defer cancel()
	_, err := a.client.Apply(ctx, app, objects)
	var refused *cluster.Error
	if errors.As(err, &refused) && refused.Reason == cluster.Contested {
		return &rollout.InvalidError{Msg: refused.Error()}
	}
	return err
}

// record leaves the loop's notes as Kubernetes events.
func record(client *cluster.Client) reconciler.Recorder {
	return func(ctx context.Context, about rollout.Ref, warning bool, reason, message string) {
		kind := cluster.Normal
		if warning {
			kind = cluster.Warning
		}
		client.Record(ctx, about, kind, reason, "Reconcile", message)
	}
}

// Prune is reconciler.Applier's.
func (a applier) Prune(ctx context.Context, app string, candidates []rollout.Ref) ([]rollout.Ref, error) {
	ctx, cancel := outlive(ctx)
	defer cancel()
	gone, _, err := a.client.Prune(ctx, app, candidates)
	return gone, err
}

// grace is how long a pass may go on after the program was told to stop.
// Kubernetes kills a pod after 30 seconds.
const grace = 20 * time.Second

// outlive returns a context that ends a while after its parent.
func outlive(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}
