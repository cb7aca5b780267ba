//go:build kubernetes1.30

package main

import (
	"context"
	"time"

	"k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	manageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

func completeAPIServer(_ context.Context, server *options.ServerRunOptions) (options.CompletedOptions, error) {
	return server.Complete()
}

// runAPIServer needs the linker flags of .ci/skew, so that the server reports its release.
func runAPIServer(ctx context.Context, completed options.CompletedOptions) error {
	return app.Run(completed, ctx.Done())
}

func configureControllers(_ context.Context, manager *manageroptions.KubeControllerManagerOptions, _ *flag.NamedFlagSets,
	known, disabled []string, aliases map[string]string) (*config.Config, error) {
	return manager.Config(known, disabled, aliases)
}

var daemonSetWorkers []string // this version has no flag, and reconciles two DaemonSets in parallel

func expiry(at time.Time) *time.Time { return &at }
