package cluster_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestKindsWithoutNamespace checks that the API server, not the manifest, says whether a kind is namespaced. If the options forbid a kind
// later, an app may keep its existing objects of this kind.
func TestKindsWithoutNamespace(t *testing.T) {
	w := newWorld(t)
	w.kinds = "example.com/Widget"
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS, namespace: NS}\nvalue: 1\n"
	err := w.Check(t.Context(), "shop", w.objects(class))
	if rollout.ReasonOf(err) != rollout.HeldPolicy || !strings.HasSuffix(err.Error(), "may have no scheduling.k8s.io/PriorityClass") {
		t.Errorf("the error is %v", err)
	}
	w.kinds = "scheduling.k8s.io/PriorityClass"
	must(t, w.Check(t.Context(), "shop", w.objects(class)))
	w.apply("shop", class)
	w.kinds = "example.com/Widget"
	must(t, w.Check(t.Context(), "shop", w.objects(class))) // the app has this object already
}

// TestNamespaces checks that a client whose scope is two namespaces needs only a Role in each of them. The client must not read or write
// other namespaces.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	tc := testcluster.Shared(t)
	w := &world{t: t, cluster: tc, ns: tc.Namespace(t), namespaces: []string{"", tc.Namespace(t)}}
	w.namespaces[0] = w.ns
	other, beyond := w.namespaces[1], tc.Namespace(t)
	robot := w.account("robot")
	w.permit(robot, w.ns, rule("*", "*", "*"))
	w.permit(robot, other, rule("*", "*", "*"))
	config := w.login(robot)
	w.connect(config)
	if uid, err := w.UID(t.Context()); err != nil || !strings.HasPrefix(uid, w.ns+"/") {
		t.Errorf("the uid is %q, %v", uid, err)
	}
	settingsIn := func(namespace string) string {
		return strings.Replace(coreManifest("ConfigMap", "settings", "data: {a: b}"), "NS", namespace, 1)
	}
	all := documents(shop, settingsIn(other))
	w.apply("shop", all)
	w.complete("shop", "shop")
	must(t, tc.Kube.CoreV1().ConfigMaps(other).Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	if again := w.healed("shop", all); len(again.Written) != 1 {
		t.Errorf("after a deletion in the second namespace: %+v", again)
	}

	for manifest, want := range map[string]string{
		settingsIn(beyond): "is in namespace " + beyond + ", which --namespaces leaves out",
		"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NS}\nvalue: 1\n": "is cluster-scoped, " +
			"but gitrollout runs with --namespaces",
	} {
		_, err := w.Apply(t.Context(), "shop", w.objects(manifest))
		_, _, pruned := w.Prune(t.Context(), "shop", []rollout.Ref{w.objects(manifest)[0].Ref()})
		_, foreign := w.OtherOwners(t.Context(), "shop", w.objects(manifest), time.Now())
		for _, err := range []error{err, pruned, foreign, w.Check(t.Context(), "shop", w.objects(manifest))} {
			if refused := wantRefusal(t, manifest, err, cluster.Forbidden); refused.Msg != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
	}

	if c, err := cluster.New(config, cluster.Options{Cluster: "test"}); err != nil || c.Start(t.Context()) == nil {
		t.Errorf("without namespaces it has started all the same: %v", err)
	}
}
