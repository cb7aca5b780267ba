package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/publish/notify/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// newNotifier makes the worker that tells people what the state branch records.
// What it does in Git is beside the loop's, so that no pass waits for it.
func newNotifier(l *loop, writer string, log *slog.Logger) (*worker.Worker, error) {
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return nil, fmt.Errorf("name this process: %w", err)
	}
	deps := serviceDeps(l.client)
	told := &toldRecord{l.created.Beside(), rollout.NotifiedBranch(l.source.cluster), l.source.cluster}
	return worker.New(worker.Options{
		Spread: spread,
		ID:     writer + "-" + hex.EncodeToString(id), Cluster: l.source.cluster,
		Update: told.update, History: told.recorded,
		Send: func(ctx context.Context, r rollout.Receiver, m notify.Message) (final bool, after time.Duration, err error) {
			err = service.Send(ctx, deps, r, m)
			var failed *service.Failure
			if errors.As(err, &failed) {
				final, after = failed.Final, failed.After
			}
			return final, after, err
		},
		ProfileOf: service.ProfileOf, Dedups: service.Dedups, Now: time.Now,
		Links: func(config *rollout.Forge) notify.Links {
			pages := forge.PagesOf(config, l.remote)
			return notify.Links{Commit: pages.Commit, Branch: pages.Branch}
		},
		Log: func(problem error, done string) {
			if problem != nil {
				log.Warn("notifications", "error", problem)
				return
			}
			log.Debug("notifications", "done", done)
		},
	}), nil
}

func serviceDeps(client *cluster.Client) service.Deps {
	return service.Deps{Client: call.Clients(), Secret: ownSecrets(client, ""), Getenv: os.Getenv, ReadFile: os.ReadFile,
		Now: time.Now}
}

// toldRecord is the record of who was told of what, on its branch.
type toldRecord struct {
	repo            *git.Repo
	branch, cluster string
}

// update is worker.Options'. A record that cannot be read is not written over:
// it may be a newer version's.
func (t *toldRecord) update(ctx context.Context, now time.Time, change func(*rollout.Notified) error) error {
	_, err := t.repo.CommitToBranch(ctx, t.branch, func(tree *git.Snapshot) (rollout.Update, error) {
		record := &rollout.Notified{}
		_, found, err := tree.Lookup(rollout.NotifiedPath)
		if err != nil {
			return rollout.Update{}, err
		}
		var was []byte
		if found {
			if was, err = tree.ReadFile(rollout.NotifiedPath); err != nil {
				return rollout.Update{}, err
			}
			if record, err = rollout.ParseNotified(was); err != nil {
				return rollout.Update{}, fmt.Errorf("branch %s: %w", t.branch, err)
			}
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
			"%s: told %s\n", t.cluster, strings.Join(slices.Sorted(maps.Keys(record.Receivers)), ", "))}, nil
	})
	return err
}

// recorded is worker.Options' History: what the commits of the state branch have changed.
func (t *toldRecord) recorded(ctx context.Context, after, upTo string) ([]rollout.Recorded, error) {
	if upTo == "" {
		return nil, worker.ErrGone
	}
	all, err := git.Recorded(ctx, t.repo, after, upTo)
	if errors.Is(err, git.ErrNotFound) {
		return nil, worker.ErrGone
	}
	return all, err
}
