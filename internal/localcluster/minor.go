//go:build !kubernetes1.30

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	manageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// This file has the calls to Kubernetes' libraries that differ between minor versions. minor_1_30.go has these calls
// for the oldest supported minor version, which .ci/skew uses.

func completeAPIServer(ctx context.Context, server *options.ServerRunOptions) (options.CompletedOptions, error) {
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, fmt.Errorf("feature gates: %w", err)
	}
	return server.Complete(ctx)
}

// runAPIServer replaces app.Run, which would report the version v0.0.0-master to clients. Only official builds set
// their release by a linker flag.
func runAPIServer(ctx context.Context, completed options.CompletedOptions) error {
	config, err := app.NewConfig(completed)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	config.Aggregator.GenericConfig.EffectiveVersion = release{config.Aggregator.GenericConfig.EffectiveVersion}
	config.KubeAPIs.ControlPlane.Generic.EffectiveVersion = release{config.KubeAPIs.ControlPlane.Generic.EffectiveVersion}
	chain, err := config.Complete()
	if err != nil {
		return fmt.Errorf("complete the configuration: %w", err)
	}
	server, err := app.CreateServerChain(chain)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return prepared.Run(ctx)
}

// release is an EffectiveVersion that reports kubernetesVersion as its Git version.
type release struct{ compatibility.EffectiveVersion }

func (r release) Info() *version.Info {
	info := *r.EffectiveVersion.Info()
	info.GitVersion, info.GitCommit = kubernetesVersion, ""
	return &info
}

// configureControllers returns the controller manager's configuration from the parsed flags.
func configureControllers(ctx context.Context, manager *manageroptions.KubeControllerManagerOptions, parsed *flag.NamedFlagSets,
	known, disabled []string, aliases map[string]string) (*config.Config, error) {
	manager.ParsedFlags = parsed
	if err := manager.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	return manager.Config(ctx, known, disabled, aliases)
}

// daemonSetWorkers sets the number of DaemonSets that are reconciled in parallel.
var daemonSetWorkers = []string{"--concurrent-daemonset-syncs=10"}

// expiry returns a certificate's last moment, in the type that kubeadm's library takes.
func expiry(at time.Time) time.Time { return at }
