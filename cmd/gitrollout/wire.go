package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/gitstore"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/publish/notify/worker"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/measure"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

type loop struct {
	*reconciler.Reconciler
	source   sourceOptions
	remote   string // without credentials
	server   string
	kube     *rest.Config
	stop     context.CancelFunc
	client   *cluster.Client
	analyzer *measure.Worker
	created  *adapters.Repository
	forge    *forge.Worker
	notifier *worker.Worker
	sinks    *adapters.Sinks
	renderer *render.Renderer
}

func (l *loop) asked(uid string, namespaces []string, log *slog.Logger) cluster.Options {
	return cluster.Options{
		Cluster: l.source.cluster, UID: uid, Namespaces: namespaces, OnChange: func(app string) { l.Touch(app) },
		Wants:   func(app string, ref rollout.Ref) (rollout.Object, error) { return l.Wants(app, ref) },
		MayHave: func(app, kind string) *rollout.InvalidError { return l.MayHave(app, kind) },
		Taken: func(ref rollout.Ref, fields string) {
			log.Info("fields that left Git are taken over from another manager, and are removed when this commit is applied",
				"object", ref.Title(), "fields", fields)
			l.client.Record(context.Background(), ref, cluster.Normal, "FieldsTakenOver", "Reconcile",
				"fields that left Git are removed when this commit is applied: "+fields)
		},
	}
}

func (l *loop) close() {
	l.stop()
	l.client.Wait()
}

// writer describes a process that runs reconciler passes. Records name the process by its id.
type writer struct {
	id        string
	exclusive bool     // stop if another writer takes over
	ends      bool     // stop after one pass
	uid       string   // the cluster's uid on the state branch, if known
	only      []string // if set, only roll back these apps, and record nothing
}

func newLoop(ctx context.Context, source sourceOptions, keys trustOptions, target clusterOptions, who writer,
	log *slog.Logger, s streams,
) (*loop, error) {
	source, options, err := source.ready(ctx, keys, s)
	if err != nil {
		return nil, err
	}
	repo, err := openRepository(ctx, options)
	if err != nil {
		return nil, err
	}
	config, err := target.config()
	if err != nil {
		return nil, err
	}
	l := &loop{source: source, remote: repo.Remote().String(), server: config.Host, kube: config, created: repo}
	keyring := &adapters.Keyring{As: keys.as, Now: time.Now, Client: func() *cluster.Client { return l.client },
		App: func(name string) rollout.App { return l.App(name) }}
	l.renderer = newOpener(s, log, keyring.Unlock)
	config.Wrap(adapters.Beating)
	l.forge = newForge(source, options.Auth, l.remote, log)
	if l.client, err = cluster.New(config, l.asked(who.uid, target.namespaces, log)); err != nil {
		return nil, &failure{code: exitCluster, err: err}
	}
	uid, err := slowly(s, "connecting to the cluster at "+config.Host,
		func() (string, error) { return l.client.UID(ctx) })
	if err != nil {
		return nil, &failure{code: exitCluster, err: fmt.Errorf("cluster %s: %w", config.Host, err)}
	}
	// After ctx ends, the pass in progress still needs watches.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.notifier = newNotifier(l, who.id, log)
	l.analyzer = newAnalyzer(watching, l, keys, log)
	l.sinks = &adapters.Sinks{Forge: l.forge, Notifier: l.notifier, Client: l.client}
	policy, approve := keys.policy.edges(repo.Repo, options.Keys)
	l.Reconciler = reconciler.New(reconciler.Options{
		Cluster: source.cluster, UID: uid, Namespace: protected(), Namespaces: target.namespaces, As: keys.as,
		Source: rollout.Source{Repo: l.remote, Branch: source.branch},
		Writer: who.id, Exclusive: who.exclusive, Ends: who.ends, Only: who.only, Analyzer: l.analyzer,
		Repository: repo, Past: repo, Renderer: l.renderer, Observer: adapters.Observer{Client: l.client},
		Applier: adapters.Applier{Client: l.client}, Jobs: adapters.Jobs{Client: l.client},
		Annotations: cluster.Annotator{Client: l.client}, Log: log, ShowsForge: true,
		Tell: l.sinks.Tell, Trace: l.sinks.Trace, Spread: adapters.Spread, Nodes: l.client.Nodes, Know: l.client.Know,
		Approve: approve, Policy: policy, Believe: stateCheck(options.Keys),
		Branches: &adapters.Repository{Repo: repo.Beside()}, BelievePeer: adapters.BelievePeer(options.Keys),
	})
	starting := context.AfterFunc(ctx, stop)
	_, err = slowly(s, "watching the cluster at "+config.Host,
		func() (any, error) { return nil, l.client.Start(watching) })
	if !starting() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		l.close()
		return nil, &failure{code: exitCluster, err: fmt.Errorf("cluster %s: %w", config.Host, err)}
	}
	return l, nil
}

func (o sourceOptions) ready(ctx context.Context, keys trustOptions, s streams) (sourceOptions, git.Options, error) {
	trusted, err := keys.open()
	switch {
	case err != nil:
		return o, git.Options{}, err
	case trusted != nil && o.cluster == "" && os.Getenv("GITROLLOUT_CLUSTER") == "":
		return o, git.Options{}, usagef("name the cluster with --cluster: " +
			"the choice must not depend on commits that are not verified yet")
	case keys.State != "" && o.signing() == "":
		return o, git.Options{}, usagef("--verify-state needs --signing-key: " +
			"without a signature, gitrollout would not trust its own records")
	}
	if o.author != "" {
		if o.who, err = identity(ctx, o.author); err != nil {
			return o, git.Options{}, err
		}
	}
	if err := keys.policy.check(o.branch); err != nil {
		return o, git.Options{}, err
	}
	o.keys = trusted
	if o, err = o.resolve(ctx, s); err != nil {
		return o, git.Options{}, err
	}
	options, err := o.options()
	options.Policy, _, _ = strings.Cut(keys.policy.ref, ":")
	return o, options, err
}

func (o clusterOptions) kubectl() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

func (o clusterOptions) config() (*rest.Config, error) {
	config, err := o.kubectl().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("no cluster is configured: name a kubeconfig with --kubeconfig or KUBECONFIG")
	} else if err != nil {
		err = fmt.Errorf("kubeconfig: %w", err)
	}
	return config, withCode(exitCluster, err)
}

func readConfig(tree rollout.Tree, cluster string) (*rollout.Config, error) {
	return source.NewReader(cluster, nil).ConfigAt(tree)
}

func (l *loop) startBackground() (stop func()) {
	stopForge, stopNotifier := adapters.Start(l.forge), adapters.Start(l.notifier)
	return func() {
		stopNotifier()
		stopForge()
	}
}

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

// ownSecrets returns a function that reads a Secret. Namespace "" means gitrollout's own namespace. Unless label is "",
// Secrets in other namespaces must have this label with the value "true".
func ownSecrets(client *cluster.Client, label string) func(context.Context, string, string) (map[string]string, error) {
	return func(ctx context.Context, namespace, name string) (map[string]string, error) {
		if namespace == "" {
			return client.SecretData(cluster.As(ctx, ""), ownNamespace("default"), name, "")
		}
		return client.SecretData(ctx, namespace, name, label)
	}
}

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
