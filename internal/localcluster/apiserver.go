package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// serviceRange is the range of the Services' cluster IPs. Requests to these addresses fail, because no kube-proxy runs.
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
	completed, err := completeAPIServer(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("complete the kube-apiserver options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver options: %w", utilerrors.NewAggregate(errs))
	}
	return func(ctx context.Context) error { return runAPIServer(ctx, completed) }, nil
}

// apiServerFlags returns the flags of the apiserver. The apiserver behaves as in an ordinary cluster. For example, RBAC
// and all default admission plugins are enabled.
func apiServerFlags(etcdURL string, certs certificates) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		// Without these two flags the apiserver looks for a public interface, and refuses to publish a loopback address
		// as an endpoint of the kubernetes Service.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		// The apiserver can reach only the ExternalIP of a node.
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
		// Without this flag, open watches would delay the end of the apiserver by a minute.
		"--shutdown-send-retry-after=true",
		"--shutdown-delay-duration=0s",
	}
}
