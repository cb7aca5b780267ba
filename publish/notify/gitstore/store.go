// Package gitstore records in Git which events each receiver got.
package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/notify/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// Store keeps the record on a separate branch.
type Store struct {
	Repo    *git.Repo
	Cluster string
}

// Update implements worker.Options.Update. It never replaces an unreadable record, because a newer gitrollout may have
// written the record.
func (s *Store) Update(ctx context.Context, now time.Time, change func(*rollout.Notified) error) error {
	branch := rollout.NotifiedBranch(s.Cluster)
	_, err := s.Repo.CommitToBranch(ctx, branch, func(tree *git.Snapshot) (rollout.Update, error) {
		record := &rollout.Notified{}
		was, err := tree.ReadFile(rollout.NotifiedPath)
		switch {
		case err == nil:
			if record, err = rollout.ParseNotified(was); err != nil {
				return rollout.Update{}, fmt.Errorf("branch %s: %w", branch, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return rollout.Update{}, err
		}
		if err := change(record); err != nil {
			return rollout.Update{}, err
		}
		data, err := record.Encode()
		if err != nil {
			return rollout.Update{}, err
		}
		edits := map[string][]byte{}
		if !bytes.Equal(data, was) {
			edits[rollout.NotifiedPath] = data
		}
		return rollout.Update{Edits: edits, When: rollout.Second(now), Message: fmt.Sprintf(
			"%s: told %s\n", s.Cluster, strings.Join(slices.Sorted(maps.Keys(record.Receivers)), ", "))}, nil
	})
	return err
}

// Recorded implements worker.Options.History.
func (s *Store) Recorded(ctx context.Context, after, upTo string) ([]rollout.StateCommit, error) {
	if upTo == "" {
		return nil, worker.ErrGone
	}
	all, err := git.Recorded(ctx, s.Repo, after, upTo)
	if errors.Is(err, git.ErrNotFound) {
		return nil, worker.ErrGone
	}
	return all, err
}
