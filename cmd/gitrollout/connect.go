package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/views/console"
)

// patience is how long a command that only looks waits for the cluster.
const patience = 15 * time.Second

// connect adds the cluster to what is seen. Until ctx ends it is watched, and changed is called whenever an app's
// objects change. A cluster that cannot be looked at is an error; whoever can do without it shows the error as a note.
func connect(ctx context.Context, w *console.World, target clusterOptions, changed func(app string), s streams) error {
	config, err := target.config()
	if err != nil {
		return err
	}
	client, err := cluster.New(config, cluster.Options{Cluster: w.Cluster, OnChange: changed,
		Namespaces: target.namespaces, UID: w.UID})
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
	if err == nil && w.UID != "" && uid != w.UID {
		err = fmt.Errorf(
			"this is not cluster %s: its uid is %s, and the state branch is for %s; choose another with --context",
			w.Cluster, uid, w.UID)
	}
	if err != nil {
		cancel()
		client.Wait()
		return &failure{code: exitCluster, err: fmt.Errorf("cluster %s: %w", config.Host, err)}
	}
	w.Client = client
	return nil
}

// tryConnect is connect for commands that show what Git says in any case.
func tryConnect(ctx context.Context, w *console.World, target clusterOptions, changed func(app string), s streams) {
	if err := connect(ctx, w, target, changed, s); err != nil {
		w.Note = "shown from Git alone, without pods: " + err.Error()
	}
}
