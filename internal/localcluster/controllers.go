package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// controllers lists the controllers of workloads, Services, namespaces and access. It omits controllers that need a
// cloud, a disk or a kubelet. It also omits the node lifecycle controller, because nodes never fail.
var controllers = []string{
	names.DeploymentController,
	names.ReplicaSetController,
	names.StatefulSetController,
	names.DaemonSetController,
	names.JobController,
	names.CronJobController,
	names.TTLAfterFinishedController,
	names.EndpointSliceController,
	names.EndpointsController,
	names.GarbageCollectorController,
	names.PodGarbageCollectorController,
	names.NamespaceController,
	names.ResourceQuotaController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.RootCACertificatePublisherController,
	names.ClusterRoleAggregationController,
	names.DisruptionController,
	names.HorizontalPodAutoscalerController,
}

// newControllerManager prepares the kube-controller-manager. The returned function runs it until the context ends.
func newControllerManager(ctx context.Context, arguments []string) (func(context.Context) error, error) {
	manager, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("kube-controller-manager options: %w", err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	sets := manager.Flags(known, disabled, aliases)

	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, fmt.Errorf("kube-controller-manager flags: %w", err)
	}
	config, err := configureControllers(ctx, manager, &sets, known, disabled, aliases)
	if err != nil {
		return nil, fmt.Errorf("complete the kube-controller-manager options: %w", err)
	}
	completed := config.Complete()
	return func(ctx context.Context) error { return app.Run(ctx, completed) }, nil
}

func controllerManagerFlags(kubeconfig string, certs certificates, defaultLimits bool) []string {
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--service-account-private-key-file=" + certs.path(serviceAccountName+".key"),
		"--root-ca-file=" + certs.path(authorityName+".crt"),
		// There is only one controller manager, so no leader election is needed. Nothing reads the metrics.
		"--leader-elect=false",
		"--secure-port=0",
		"--horizontal-pod-autoscaler-sync-period=2s",
	}
	if defaultLimits {
		return flags
	}
	// Tests wait for the controllers, so the limits are higher than Kubernetes' defaults.
	return append(append(flags, daemonSetWorkers...),
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
		"--concurrent-deployment-syncs=20",
		"--concurrent-replicaset-syncs=20",
		"--concurrent-statefulset-syncs=20",
		"--concurrent-job-syncs=10",
		"--concurrent-service-endpoint-syncs=20",
		"--concurrent-endpoint-syncs=20",
		"--concurrent-gc-syncs=40",
		"--concurrent-namespace-syncs=20",
	)
}
