package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/gitstore"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/publish/notify/worker"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

// newNotifier uses its own connection to Git.
func newNotifier(l *loop, writer string, log *slog.Logger) *worker.Worker {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // cannot fail
	deps := serviceDeps(l.client)
	store := &gitstore.Store{Repo: l.created.Beside(), Cluster: l.source.cluster}
	return worker.New(worker.Options{
		Spread: adapters.Spread,
		ID:     writer + "-" + hex.EncodeToString(id), Cluster: l.source.cluster,
		Update: store.Update, History: store.Recorded,
		Send: func(ctx context.Context, r rollout.Receiver, m notify.Message) (final bool, after time.Duration, err error) {
			err = service.Send(ctx, deps, r, m)
			if failed := new(service.Failure); errors.As(err, &failed) {
				final, after = failed.Final, failed.After
			}
			return final, after, err
		},
		ProfileOf: service.ProfileOf, Now: time.Now,
		Links: func(config *rollout.Forge) notify.Links {
			pages := forge.PagesOf(config, l.remote)
			return notify.Links{Commit: pages.Commit, Branch: pages.Branch}
		},
		Log: logged(log, "notifications", slog.LevelDebug),
	})
}

func serviceDeps(client *cluster.Client) service.Deps {
	return service.Deps{Client: call.Clients(), Secret: ownSecrets(client, ""), Getenv: os.Getenv, ReadFile: os.ReadFile}
}
