package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/publish/serve"
	"gitrollout.dev/gitrollout/reconciler/adapters"
)

// newForge returns a worker that does nothing if no forge is known.
func newForge(source sourceOptions, auth wire.Auth, remote string, log *slog.Logger) *forge.Worker {
	return forge.NewWorker(forge.Options{
		Spread:  adapters.Spread,
		Cluster: source.cluster, Remote: remote, Branch: source.branch,
		Trusted: os.Getenv("GITROLLOUT_FORGE_URL"), Token: forgeToken(source, auth), Now: time.Now,
		Log: logged(log, "forge", slog.LevelInfo),
	})
}

func logged(log *slog.Logger, who string, level slog.Level) func(problem error, done string) {
	return func(problem error, done string) {
		if problem != nil {
			log.Warn(who, "error", problem)
			return
		}
		log.Log(context.Background(), level, who, "done", done)
	}
}

// forgeToken returns a function to call for each request, because tokens expire. GITROLLOUT_FORGE_TOKEN has precedence
// over Git's token.
func forgeToken(source sourceOptions, auth wire.Auth) func(context.Context) (string, error) {
	if token := os.Getenv("GITROLLOUT_FORGE_TOKEN"); token != "" {
		return func(context.Context) (string, error) { return token, nil }
	}
	return auth.Token(source.repo)
}

type hookOptions struct {
	address    string
	secretFile string
}

func (o *hookOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.address, "webhook-address", "",
		"take the forge's webhooks at `host:port`, path /webhook (default: none are taken)")
	flags.StringVar(&o.secretFile, "webhook-secret-file", "",
		"`file` with the webhooks' secret (default: GITROLLOUT_WEBHOOK_SECRET)")
}

func (o *hookOptions) secret() (secret string, err error) {
	text := []byte(os.Getenv("GITROLLOUT_WEBHOOK_SECRET"))
	if o.secretFile != "" {
		if text, err = os.ReadFile(o.secretFile); err != nil {
			return "", usagef("--webhook-secret-file: %v", err)
		}
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "", usagef("webhooks need a secret, or any caller could make gitrollout fetch; " +
			"set GITROLLOUT_WEBHOOK_SECRET or --webhook-secret-file, and enter the same secret at the forge")
	}
	return string(text), nil
}

func (o *hookOptions) listen() (l net.Listener, secret string, err error) {
	if o.address == "" {
		return nil, "", nil
	}
	if secret, err = o.secret(); err != nil {
		return nil, "", err
	}
	if l, err = net.Listen("tcp", o.address); err != nil {
		return nil, "", usagef("--webhook-address: %v", err)
	}
	return l, secret, nil
}

func serveHooks(listener net.Listener, secret string, l *loop, log *slog.Logger) (stop func(), err error) {
	hook, err := forge.NewHook(forge.Hook{Secret: secret, Remote: l.remote, Branch: l.source.branch, Pushed: l.Poll,
		Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	stop = serve.On(listener, serve.Options{ // accepts any Host header, because requests are signed
		Server: quiet(hook, log.Handler()), Now: time.Now,
		Ended: func(err error) { log.Error("webhooks are no longer taken", "error", err) },
	})
	log.Info("taking webhooks", "address", listener.Addr().String(), "path", forge.HookPath)
	return stop, nil
}
