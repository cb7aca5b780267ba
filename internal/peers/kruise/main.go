// Command kruise runs OpenKruise's controllers for CloneSets, Advanced StatefulSets and Advanced DaemonSets in the
// cluster of --kubeconfig or KUBECONFIG. The tests for docs/kruise-workloads.md use this command. Unlike
// kruise-manager, it omits the webhooks that set defaults, so objects need all fields.
package main

import (
	"log"
	"os"

	appsv1alpha1 "github.com/openkruise/kruise/apis/apps/v1alpha1"
	appsv1beta1 "github.com/openkruise/kruise/apis/apps/v1beta1"
	policyv1alpha1 "github.com/openkruise/kruise/apis/policy/v1alpha1"
	kruiseclient "github.com/openkruise/kruise/pkg/client"
	"github.com/openkruise/kruise/pkg/controller/cloneset"
	"github.com/openkruise/kruise/pkg/controller/daemonset"
	"github.com/openkruise/kruise/pkg/controller/statefulset"
	"github.com/openkruise/kruise/pkg/features"
	"github.com/openkruise/kruise/pkg/util/client"
	"github.com/openkruise/kruise/pkg/util/controllerfinder"
	"github.com/openkruise/kruise/pkg/util/fieldindex"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2/klogr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctrl.SetLogger(klogr.New())
	if err := run(); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

func run() error {
	kinds := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{
		appsv1alpha1.AddToScheme, appsv1beta1.AddToScheme, policyv1alpha1.AddToScheme,
	} {
		if err := add(kinds); err != nil {
			return err
		}
	}
	kinds.AddUnversionedTypes(metav1.SchemeGroupVersion, &metav1.UpdateOptions{}, &metav1.DeleteOptions{}, &metav1.CreateOptions{})
	features.SetDefaultFeatureGates()
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	if err := kruiseclient.NewRegistry(config); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: kinds, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", NewCache: client.NewCache,
	})
	if err != nil {
		return err
	}
	if err := controllerfinder.InitControllerFinder(mgr); err != nil {
		return err
	}
	if err := fieldindex.RegisterFieldIndexes(mgr.GetCache()); err != nil {
		return err
	}
	for _, add := range []func(manager.Manager) error{cloneset.Add, statefulset.Add, daemonset.Add} {
		if err := add(mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
