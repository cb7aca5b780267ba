package main

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/contract"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
)

// realRemote is a real Git server over HTTP, on which the tests of the repository contract run.
type realRemote struct {
	repo   *gittest.Repo
	server *gittest.Server
}

func (r *realRemote) Open(t *testing.T) reconciler.Repository {
	t.Helper()
	opened, err := openRepository(t.Context(), git.Options{URL: r.server.URL, Branch: "main", Cluster: "test"})
	must(t, err)
	return opened
}

func (r *realRemote) Commit(t *testing.T, branch string, files map[string]string) string {
	t.Helper()
	if branch == "main" && r.repo.Ref("main") == "" {
		return r.repo.CommitFiles("first", files)
	}
	w := &loopWorld{T: t, repo: r.repo}
	if r.repo.Ref(branch) == "" {
		r.repo.InBare("update-ref", "refs/heads/"+branch, r.repo.Ref("main"))
	}
	w.edit(branch, files)
	return r.repo.Ref(branch)
}

func (r *realRemote) Force(_ *testing.T, branch, commit string) {
	r.repo.InBare("update-ref", "refs/heads/"+branch, commit)
}

func (r *realRemote) Head(_ *testing.T, branch string) string { return r.repo.Ref(branch) }

func (r *realRemote) Down(down bool) {
	if r.server.Fault(gittest.Faults{}); down {
		r.server.Fault(gittest.Faults{Status: 503})
	}
}

func (r *realRemote) LoseAnswer() { r.server.Fault(gittest.Faults{DropAfter: 1}) }

// TestGitKeepsTheContract runs the tests of the repository contract on a real Git server. The simulator must pass the same tests.
func TestGitKeepsTheContract(t *testing.T) {
	t.Parallel()
	contract.Repository(t, func(t *testing.T) contract.Remote {
		repo := gittest.New(t)
		return &realRemote{repo: repo, server: repo.HTTP(gittest.HTTPOptions{})}
	})
}

// realCluster is a real Kubernetes control plane, on which the tests of the cluster contract run.
type realCluster struct {
	adapters.Applier
	adapters.Observer
	*testcluster.Cluster
	namespace string
}

func (r *realCluster) Namespace() string { return r.namespace }

func (r *realCluster) Await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await(t, what, ok)
}

func (r *realCluster) Writes(*testing.T) int { return r.Stats().Writes }

func (r *realCluster) Scale(t *testing.T, deployment string, replicas int) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	must(t, errorOf(r.Kube.AppsV1().Deployments(r.namespace).Patch(t.Context(), deployment, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})))
}

func (r *realCluster) Delete(t *testing.T, ref rollout.Ref) {
	t.Helper()
	if ref.Kind == "Secret" {
		must(t, r.Kube.CoreV1().Secrets(r.namespace).Delete(t.Context(), ref.Name, metav1.DeleteOptions{}))
		return
	}
	must(t, r.Kube.CoreV1().ConfigMaps(r.namespace).Delete(t.Context(), ref.Name, metav1.DeleteOptions{}))
}

func (r *realCluster) Share(t *testing.T, ref rollout.Ref, data map[string]string) {
	t.Helper()
	o, injector := applyv1.ConfigMap(ref.Name, ref.Namespace).WithData(data), metav1.ApplyOptions{FieldManager: "injector"}
	must(t, errorOf(r.Kube.CoreV1().ConfigMaps(ref.Namespace).Apply(t.Context(), o, injector)))
}

func (r *realCluster) Data(t *testing.T, ref rollout.Ref) map[string]string {
	t.Helper()
	o, err := r.Kube.CoreV1().ConfigMaps(ref.Namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
	must(t, err)
	return o.Data
}

func (r *realCluster) Exists(t *testing.T, ref rollout.Ref) bool {
	t.Helper()
	_, err := r.Kube.CoreV1().ConfigMaps(r.namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
	if ref.Kind == "Secret" {
		_, err = r.Kube.CoreV1().Secrets(r.namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestClusterKeepsTheContract runs the tests of the cluster contract on a real control plane. The simulator must pass the same tests.
func TestClusterKeepsTheContract(t *testing.T) {
	t.Parallel()
	contract.ClusterCases(t, openCluster)
}

func openCluster(t *testing.T) contract.Cluster {
	running := testcluster.Shared(t)
	client, err := cluster.New(running.Config, cluster.Options{Cluster: "test"})
	must(t, err)
	watching, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); client.Wait() })
	must(t, client.Start(watching))
	return &realCluster{
		Applier: adapters.Applier{Client: client}, Observer: adapters.Observer{Client: client},
		Cluster: running, namespace: running.Namespace(t),
	}
}

// TestCloneSetsKeepTheContract runs the contract's tests for CloneSets, with OpenKruise's controllers or with a model that replaces them.
func TestCloneSetsKeepTheContract(t *testing.T) { contract.CloneSets(t, openKruise("CloneSet")) }

// TestAdvancedDaemonSetsKeepTheContract runs the contract's tests for Advanced DaemonSets.
func TestAdvancedDaemonSetsKeepTheContract(t *testing.T) {
	contract.AdvancedDaemonSets(t, openKruise("DaemonSet"))
}

func openKruise(kind string) func(t *testing.T) contract.Cluster {
	return func(t *testing.T) contract.Cluster {
		c := openCluster(t).(*realCluster)
		kruisetest.Start(t, c.Cluster, c.namespace)
		of, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", kind)
		c.Know([]rollout.Partitioned{*of})
		return c
	}
}
