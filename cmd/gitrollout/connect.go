package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

const connectTimeout = 15 * time.Second

// connect sets a session's client. Until ctx ends, the client calls `changed` for each app whose objects change.
// connect fails if the cluster is unreachable or has another uid.
func connect(ctx context.Context, w *console.Session, changed func(app string), s streams) (err error) {
	w.Client, err = watchCluster(ctx, optionsOf(w, s.target, changed), s)
	return err
}

func (o *clusterOptions) limit(w *console.Session, name string) error {
	app, err := w.App(name)
	if err == nil && len(o.namespaces) == 0 {
		o.namespaces = console.Namespaces(map[string]rollout.App{name: app}, w.States)
	}
	return err
}

func optionsOf(w *console.Session, target clusterOptions, changed func(app string)) cluster.Options {
	return cluster.Options{Cluster: w.Cluster, OnChange: changed, Namespaces: target.namespaces, UID: w.UID}
}

func watchCluster(ctx context.Context, o cluster.Options, s streams) (*cluster.Client, error) {
	config, err := s.target.config()
	if err != nil {
		return nil, err
	}
	client, err := cluster.New(config, o)
	if err != nil {
		return nil, &failure{code: exitCluster, err: err}
	}
	watching, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(connectTimeout, cancel)
	_, err = slowly(s, "looking at the cluster at "+config.Host,
		func() (any, error) { return nil, client.Start(watching) })
	if !timer.Stop() && err != nil {
		err = errors.New("no answer in " + connectTimeout.String())
	}
	uid := o.UID
	if err == nil && o.UID != "" {
		uid, err = client.UID(ctx)
	}
	if err == nil && uid != o.UID {
		err = fmt.Errorf(
			"this is not cluster %s: it has uid %s, but the state branch is for uid %s; choose another cluster with --context",
			o.Cluster, uid, o.UID)
	}
	if err != nil {
		cancel()
		client.Wait()
		return nil, &failure{code: exitCluster, err: fmt.Errorf("cluster %s: %w", config.Host, err)}
	}
	return client, nil
}

func (o *clusterOptions) dryRunner() (*cluster.DryRunner, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	server, err := cluster.NewDryRunner(config)
	return server, withCode(exitCluster, err)
}

// lookAt connects for reads. If rights are missing, it reads fewer namespaces and does not check the uid.
func lookAt(ctx context.Context, w *console.Session, changed func(app string), s streams) error {
	err := connect(ctx, w, changed, s)
	if !cluster.IsForbidden(err) {
		return err
	}
	names := s.target.namespaces
	if len(names) == 0 {
		names = console.Namespaces(w.Apps, w.States)
	}
	if own, _, failed := s.target.kubectl().Namespace(); len(names) == 0 && failed == nil {
		names = []string{own} // the namespace of the kubeconfig's context
	}
	config, _ := s.target.config() // cannot fail after connect
	o := optionsOf(w, s.target, changed)
	o.UID, o.Namespaces = "", cluster.Readable(ctx, config, names)
	client, failed := watchCluster(ctx, o, s)
	if failed != nil {
		return err
	}
	w.Client, w.Within, w.Note = client, o.Namespaces, fmt.Sprintf("cluster not verified, and pods are shown only "+
		"for namespace %s: %v", strings.Join(o.Namespaces, ", "), err)
	return nil
}

// tryConnect connects for commands that also work without a cluster. It fails only for an invalid --context.
func tryConnect(ctx context.Context, w *console.Session, changed func(app string), s streams) error {
	if _, err := s.target.config(); err != nil && s.target.context != "" {
		return err
	}
	if err := lookAt(ctx, w, changed, s); err != nil {
		w.Note = "shown from Git alone; pods are not observed: " + err.Error()
	}
	return nil
}
