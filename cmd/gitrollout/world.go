package main

import (
	"context"
	"errors"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/dashboard"
)

func openWorld(ctx context.Context, from *sourceOptions, s streams) (w *console.Session, err error) {
	if *from, err = from.resolve(ctx, s); err != nil {
		return nil, err
	}
	repo, err := from.open(ctx, "", "")
	if err != nil {
		return nil, err
	}
	w = console.New(worldOptions(*from, repo, s))
	_, err = slowly(s, "reading "+repo.Remote().String(), func() (bool, error) { return w.Refresh(ctx) })
	return w, err
}

func openRepository(ctx context.Context, options git.Options) (*adapters.Repository, error) {
	repo, err := git.Open(ctx, options)
	return &adapters.Repository{Repo: repo}, withCode(exitUsage, err)
}

func worldOptions(from sourceOptions, repo *adapters.Repository, s streams) console.Options {
	return console.Options{
		Cluster: from.cluster, Branch: from.branch, Repo: repo.Repo, Renderer: newRenderer(s), Own: protected(),
		Now: time.Now, Command: from.command,
	}
}

func dashRecords(from sourceOptions, repo *adapters.Repository, s streams) *console.Records {
	o := worldOptions(from, repo, s)
	if files := from.keys.Files(); files.Commits+files.Keyring != "" {
		o.Signers, o.Unsigned = from.keys.Accepted().Commits, "nothing is pushed until a signed commit is on top"
	}
	return &console.Records{Options: o}
}

type dashActor struct{ *console.Records }

// Act implements dashboard.Actor.
func (d dashActor) Act(ctx context.Context, who dashboard.Person, app string, a propose.Action) (string, error) {
	ctx, cancel := adapters.Outlive(ctx) // continue if the user closes the page
	defer cancel()
	said, err := d.Records.Act(ctx, who, app, a)
	if err != nil {
		return "", errors.New(message(err)) // the commands' text
	}
	return said, nil
}
