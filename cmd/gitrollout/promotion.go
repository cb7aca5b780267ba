package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// pushCommand is what promote, abort, hold and retry share: they write the
// promotion file of one app to the users' branch.
type pushCommand struct {
	streams
	source sourceOptions
	author string
}

func (c *pushCommand) register(cmd *cobra.Command) {
	c.source.register(cmd)
	cmd.Flags().StringVar(&c.author, "author", "", `"Name <address>" of the commit (default: git's user.name and user.email)`)
}

// order is what is to be written, and what it means.
type order struct {
	promotion *rollout.Promotion // nil removes the file
	subject   string             // of the commit
	then      string             // what will happen
}

// carryOut reads where the app stands, lets decide make an order of it, and
// pushes that.
func (c *pushCommand) carryOut(ctx context.Context, name string, decide func(in strategies.Input) (order, error)) error {
	who, err := identity(ctx, c.author)
	if err != nil {
		return err
	}
	w, err := openWorld(ctx, c.source, who, c.streams)
	if err != nil {
		return err
	}
	w.detail = true
	app, err := w.app(name)
	if err != nil {
		return err
	}
	in, err := w.input(ctx, app, time.Now())
	if err != nil {
		return err
	}
	o, err := decide(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.push(ctx, w, in, o)
}

// push writes the file on top of whatever the branch holds by now. The file
// names the release by its hash, so that it cannot approve a newer one.
func (c *pushCommand) push(ctx context.Context, w *world, in strategies.Input, o order) error {
	path := rollout.PromotionPath(w.source.cluster, in.App.Name)
	edits := map[string][]byte{path: nil}
	if o.promotion != nil {
		data, err := o.promotion.Encode()
		if err != nil {
			return err
		}
		edits[path] = data
	}
	message := fmt.Sprintf("%s in %s\n", o.subject, w.source.cluster)
	if r := in.State.Release; r != nil {
		message += fmt.Sprintf("\nRelease %s of %s by %s:\n%s\n", r.Hash, rollout.ShortID(r.Commit), r.Author, r.Subject)
	}
	if o.promotion != nil && o.promotion.Reason != "" {
		message += "\nReason: " + o.promotion.Reason + "\n"
	}
	var id string
	err := slowly(c.streams, "pushing to "+w.repo.mirror().Remote().String(), func() (err error) {
		id, err = w.repo.mirror().CommitToBranch(ctx, w.source.branch, func(*git.Snapshot) (git.Update, error) {
			return git.Update{Edits: edits, Message: message, When: time.Now()}, nil
		})
		return err
	})
	switch {
	case err != nil:
		return err
	case id == "":
		_, err = fmt.Fprintf(c.out, "nothing to push: %s says so already on %s\n%s\n", path, w.source.branch, o.then)
	default:
		_, err = fmt.Fprintf(c.out, "pushed %s to %s: %s\n%s\n", rollout.ShortID(id), w.source.branch, o.subject, o.then)
	}
	return err
}

// identity is who commits: the flag, the environment, or git's settings.
func identity(ctx context.Context, flag string) (git.Identity, error) {
	if flag != "" {
		name, rest, ok := strings.Cut(flag, "<")
		address, tail, closed := strings.Cut(rest, ">")
		who := git.Identity{Name: strings.TrimSpace(name), Email: strings.TrimSpace(address)}
		if !ok || !closed || who.Name == "" || who.Email == "" || strings.TrimSpace(tail) != "" {
			return who, usagef(`--author %q is not "Name <address>"`, flag)
		}
		return who, nil
	}
	who := git.Identity{Name: os.Getenv("GIT_AUTHOR_NAME"), Email: os.Getenv("GIT_AUTHOR_EMAIL")}
	if who.Name == "" {
		who.Name, _ = gitSays(ctx, "config", "--get", "user.name")
	}
	if who.Email == "" {
		who.Email, _ = gitSays(ctx, "config", "--get", "user.email")
	}
	if who.Name == "" || who.Email == "" {
		return who, usagef(`who are you? The commit needs an author: --author "Name <address>", or git config user.name and user.email`)
	}
	return who, nil
}

// inFlight returns the release that a decision can be about.
func inFlight(in strategies.Input) (*rollout.Release, error) {
	s := in.State
	switch {
	case s.Phase == rollout.Aborting:
		return nil, fmt.Errorf("release %s is already on its way back to %s", s.Release.Hash, s.Stable.Hash)
	case s.Phase == rollout.Degraded:
		return nil, fmt.Errorf("no release is in flight: the last one was rejected and %s serves; to try it again: gitrollout retry %s", s.Stable.Hash, in.App.Name)
	case s.Release == nil && s.Stable != nil:
		return nil, fmt.Errorf("no release is in flight: it is %s at %s", s.Phase, s.Stable.Hash)
	case s.Release == nil && s.Phase == "":
		return nil, errors.New("there is no record of it yet; is gitrollout run at work?")
	case s.Release == nil:
		return nil, fmt.Errorf("no release is in flight: it is %s", s.Phase)
	case s.Stable == nil:
		return nil, fmt.Errorf("its first deployment is in flight, which has no steps and nothing to go back to; push a version that works")
	}
	return s.Release, nil
}

func watchHint(app string) string { return "watch: gitrollout get " + app + " -w" }
