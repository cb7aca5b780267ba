package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// serviceRange is the range of the Services' cluster IPs. No requests to these addresses are routed.
const serviceRange = "10.96.0.0/16"

// auditPolicy logs each request once, with its user, verb and object.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// newAPIServer prepares the kube-apiserver. The returned function runs it until the context ends.
func newAPIServer(ctx context.Context, listener net.Listener, arguments []string) (func(context.Context) error, error) {
	server := options.NewServerRunOptions()
	server.SecureServing.Listener = listener
	server.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port

	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range server.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	if err := server.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver feature gates: %w", err)
	}
	completed, err := server.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("complete the kube-apiserver options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver options: %w", utilerrors.NewAggregate(errs))
	}
	return func(ctx context.Context) error { return runAPIServer(ctx, completed) }, nil
}

// runAPIServer replaces app.Run, so that the server reports its release. Official builds set the release by a
// linker flag. Without the flag, the server reports v0.0.0-master to clients that compare versions.
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

// apiServerFlags returns the flags of the apiserver. They differ from an ordinary cluster's flags only if
// tests cannot notice this. For example, RBAC and all default admission plugins are enabled.
func apiServerFlags(etcdURL string, certs certificates) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		// Without these two flags the apiserver looks for a public interface, and refuses to publish a loopback address as
		// the kubernetes Service.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		// Only addresses of this type can be reached.
		"--kubelet-preferred-address-types=ExternalIP",
		"--tls-cert-file=" + certs.path(apiServerName+".crt"),
		"--tls-private-key-file=" + certs.path(apiServerName+".key"),
		"--client-ca-file=" + certs.path(authorityName+".crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + certs.path(serviceAccountName+".key"),
		"--service-account-signing-key-file=" + certs.path(serviceAccountName+".key"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--profiling=false",
		// Without this flag, open watches delay the end of the apiserver by a minute.
		"--shutdown-send-retry-after=true",
		"--shutdown-delay-duration=0s",
	}
}
