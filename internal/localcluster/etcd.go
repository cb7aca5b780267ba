package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs a one-member etcd on a free loopback port, and returns when etcd accepts writes. Existing
// data in the directory stays.
func startEtcd(ctx context.Context, dir stateDir, fsync bool) (*embed.Etcd, error) {
	// With port 0, the kernel chooses the port, so no other process can take the port before etcd listens.
	// The advertised addresses are then wrong, but only other etcd members would use them.
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}

	config := embed.NewConfig()
	config.Dir = filepath.Join(dir.path, "etcd")
	config.LogOutputs = []string{dir.log("etcd")}
	config.LogLevel = "error" // at level "warn", etcd logs a line for each slow request
	config.UnsafeNoFsync = !fsync
	config.ListenClientUrls = []url.URL{anyPort}
	config.AdvertiseClientUrls = []url.URL{anyPort}
	config.ListenPeerUrls = []url.URL{anyPort}
	config.AdvertisePeerUrls = []url.URL{anyPort}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.EnableGRPCGateway = false
	// A single member elects itself without a network, so short intervals are enough.
	config.TickMs, config.ElectionMs = 10, 100

	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, err)
	case <-time.After(30 * time.Second):
		server.Close()
		return nil, fmt.Errorf("start etcd in %s: no leader after 30s, see %s", config.Dir, dir.log("etcd"))
	case <-ctx.Done():
		server.Close()
		return nil, ctx.Err()
	}
}
