package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/views/console"
)

type syncCommand struct {
	streams
	hooks   hookOptions
	webhook string
}

func newSync(s streams) *cobra.Command {
	c := &syncCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "sync [APP...]",
		Short: "Make the running reconciler read Git now",
		Long: `Make the running reconciler read Git now, instead of at its next poll. With APP, the
command then waits for at most a minute until the newest version of these apps has
started. It ends with a line such as "shop: up to date with 7c568c2" or "shop: held:
REASON", and has the exit codes of: gitrollout status --wait --for started

The reconciler must run with --webhook-address. The command posts the webhook that a
forge posts after a push, with the same URL and secret. In a cluster, this opens a way
to the URL http://127.0.0.1:8086/webhook:

  kubectl -n gitrollout port-forward deploy/gitrollout 8086

The reconciler reads Git at most once a second. If it cannot be reached, the command
says how often the reconciler reads Git without a webhook, and ends with exit code 1.`,
		Example: `  git push && gitrollout sync --webhook https://hooks.example.com/webhook
  gitrollout sync shop cart`,
		ValidArgsFunction: s.completeSeveral(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&c.webhook, "webhook", "", "`URL` of the reconciler's webhooks (default: GITROLLOUT_WEBHOOK)")
	cmd.Flags().StringVar(&c.hooks.secretFile, "webhook-secret-file", "",
		"`file` with the webhooks' secret (default: GITROLLOUT_WEBHOOK_SECRET)")
	return cmd
}

func (c *syncCommand) run(ctx context.Context, apps []string) error {
	wait := statusCommand{streams: c.streams, wait: true, timeout: time.Minute, every: time.Second, until: "started"}
	from := c.source // a copy, because wait.run completes c.source
	w, err := openWorld(ctx, &from, c.streams)
	if err != nil {
		return err
	}
	if err := c.ask(ctx, w); err != nil {
		return fmt.Errorf("%w; %s", err, console.Polling(w))
	}
	if len(apps) == 0 {
		return c.say("asked the reconciler to read Git now; " + console.Polling(w))
	}
	return wait.run(ctx, apps)
}

func (c *syncCommand) ask(ctx context.Context, w *console.Session) error {
	url := cmp.Or(c.webhook, os.Getenv("GITROLLOUT_WEBHOOK"))
	if url == "" {
		return errors.New("no reconciler was asked; name the URL of its webhooks with --webhook or GITROLLOUT_WEBHOOK")
	}
	secret, err := c.hooks.secret()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return forge.Hook{Secret: secret, Remote: w.Repo.Remote().String(), Branch: w.Branch}.Ask(ctx, url)
}
