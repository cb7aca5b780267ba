package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Record commits edits to the state branch. Each attempt calls the function change for its edits.
func (w *Session) Record(
	ctx context.Context, subject string, change func(*git.Snapshot) (map[string][]byte, error),
) (id string, err error) {
	message := fmt.Sprintf("%s: %s\n\n", w.Cluster, subject) +
		rollout.Trailer(rollout.TrailerCluster, w.Cluster) + rollout.Trailer(rollout.TrailerSource, w.Heads.Main)
	return w.Repo.CommitToBranch(ctx, w.Config().StateBranch, func(now *git.Snapshot) (rollout.Update, error) {
		edits, err := change(now)
		return rollout.Update{Edits: edits, Message: message, When: w.Now()}, err
	})
}

// Repaired returns an app's record with a new checksum, and with a serial above the cluster's. It reads the record in
// the commit "from" (empty: the state branch). If the record needs no repair, it returns nil, unless "from" or sign is
// set.
func (w *Session) Repaired(ctx context.Context, app, from string, sign bool) (*rollout.State, []byte, error) {
	path := rollout.StatePath(app)
	tree := w.State
	if from != "" {
		older, err := w.Repo.Snapshot(ctx, from)
		if err != nil {
			return nil, nil, fmt.Errorf("--from: %w", err)
		}
		tree = older
	}
	data, found, err := source.ReadFile(tree, path)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, nil, fmt.Errorf("%s is not on the state branch at %s: there is no record of %s to repair", path,
			rollout.ShortID(tree.Commit().ID), app)
	}
	state, err := rollout.ParseEditedState(path, data)
	if err != nil {
		return nil, nil, err
	}
	live := w.Client.Observe(app, state.Workloads(), nil).Serial()
	if _, unsealed := rollout.ParseState(path, data); from == "" && unsealed == nil && live <= state.Serial && !sign {
		return nil, nil, nil
	}
	state.Serial = max(state.Serial, live) + 1
	if h := state.Held; h != nil && h.Reason == rollout.HeldRolledBack {
		state.Held = nil
	}
	data, err = state.Encode()
	return state, data, err
}

const removeWithin = 3 * time.Minute

// Remove deletes workloads first, and then the objects that their pods use.
func (w *Session) Remove(ctx context.Context, app string, refs []rollout.Ref) error {
	ctx, stop := context.WithTimeout(ctx, removeWithin)
	defer stop()
	for {
		gone, kept, err := w.Client.Prune(ctx, app, refs)
		refs = slices.DeleteFunc(slices.Clone(refs), func(ref rollout.Ref) bool { return slices.Contains(gone, ref) })
		if err != nil || len(refs) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("some objects still exist; repeat the command later: %s", strings.Join(kept, "; "))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
