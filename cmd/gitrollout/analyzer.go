package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/reconciler/measure"
	"gitrollout.dev/gitrollout/rollout"
)

func newAnalyzer(ctx context.Context, l *loop, keys trustOptions, log *slog.Logger) *measure.Worker {
	return measure.New(ctx, measure.Options{
		Deps: provider.Deps{
			Client: call.ClientsWithin(keys.reach()), Agent: call.Clients(),
			Secret: ownSecrets(l.client, rollout.LabelAnalysis), Jobs: l.client, Now: time.Now,
			Getenv: os.Getenv, ReadFile: os.ReadFile,
		},
		Own: protected(), As: keys.as, Touch: func(app string) { l.Touch(app) },
		Trouble: func(app, metric string, err error) {
			log.Warn("measurement", "app", app, "metric", metric, "error", err)
		},
	})
}

// ownSecrets returns a function that reads a Secret. Namespace "" is gitrollout's own. In others, a Secret needs label,
// unless it is "", with the value "true".
func ownSecrets(client *cluster.Client, label string) func(context.Context, string, string) (map[string]string, error) {
	return func(ctx context.Context, namespace, name string) (map[string]string, error) {
		if namespace == "" {
			return client.SecretData(cluster.As(ctx, ""), ownNamespace("default"), name, "")
		}
		return client.SecretData(ctx, namespace, name, label)
	}
}
