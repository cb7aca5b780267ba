package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/cluster"
)

// patience is how long a command that only looks waits for the cluster.
const patience = 15 * time.Second

// connect adds the cluster to what is seen. Until ctx ends it is watched, and
// changed is called whenever an app's objects change. A cluster that cannot be
// looked at is an error; whoever can do without it shows the error as a note.
func (w *world) connect(ctx context.Context, target clusterOptions, changed func(app string), s streams) error {
	config, err := target.config()
	if err != nil {
		return err
	}
	client, err := cluster.New(config, cluster.Options{Cluster: w.source.cluster, OnChange: changed})
	if err != nil {
		return &failure{code: exitCluster, err: err}
	}
	watching, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, cancel)
	err = slowly(s, "looking at the cluster at "+config.Host, func() error { return client.Start(watching) })
	if !timer.Stop() && err != nil {
		err = errors.New("no answer in " + patience.String())
	}
	var uid string
	if err == nil {
		uid, err = client.UID(ctx)
	}
	if err == nil && w.uid != "" && uid != w.uid {
		err = fmt.Errorf(
			"this is not cluster %s: its uid is %s, and the state branch is for %s; choose another with --context",
			w.source.cluster, uid, w.uid)
	}
	if err != nil {
		cancel()
		client.Wait()
		return &failure{code: exitCluster, err: fmt.Errorf("cluster %s: %w", config.Host, err)}
	}
	w.client = client
	return nil
}

// tryConnect is connect for commands that show what Git says in any case.
func (w *world) tryConnect(ctx context.Context, target clusterOptions, changed func(app string), s streams) {
	if err := w.connect(ctx, target, changed, s); err != nil {
		w.note = "shown from Git alone, without pods: " + err.Error()
	}
}
