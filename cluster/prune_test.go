package cluster_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// prune calls Prune and checks which candidates are gone. Prune must return a reason for each other candidate.
func (w *world) prune(candidates []rollout.Ref, wantGone ...rollout.Ref) {
	w.t.Helper()
	gone, kept, err := w.Prune(context.Background(), "shop", candidates)
	must(w.t, err)
	slices.SortFunc(gone, rollout.Ref.Compare)
	slices.SortFunc(wantGone, rollout.Ref.Compare)
	if !slices.Equal(gone, wantGone) {
		w.t.Errorf("gone are %v, want %v (kept %v)", gone, wantGone, kept)
	}
	if len(gone)+len(kept) != len(candidates) {
		w.t.Errorf("of %d candidates %d are gone and %d kept", len(candidates), len(gone), len(kept))
	}
	if slices.Contains(kept, "") {
		w.t.Errorf("an object is kept without a reason: %q", kept)
	}
}

// untilHidden waits until the watch caches no longer have the object with the app's labels.
func (w *world) untilHidden(ref rollout.Ref) {
	w.t.Helper()
	w.until(ref.Name+" being hidden", func() (bool, string) { return !w.Shows(context.Background(), "shop", ref), "" })
}

func TestPruneDeletesOnlyWhatIsTheAppsAndMayGo(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	kept := strings.Replace(serviceManifest("kept"), "NS", "NS, annotations: {gitrollout.dev/prune: disabled}", 1)
	claim := coreManifest("PersistentVolumeClaim", "data", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}")
	w.apply("shop", documents(serviceManifest("plain"), kept, serviceManifest("released"), serviceManifest("moved"), claim))
	w.kubectl("", "label", "service", "released", "gitrollout.dev/app-")
	w.apply("other", serviceManifest("moved"))
	service := func(name string) rollout.Ref { return w.ref("", "Service", name) }
	all := []rollout.Ref{
		service("plain"), service("kept"), service("released"), service("moved"), service("never-was"),
		w.ref("", "PersistentVolumeClaim", "data"), {Kind: "Namespace", Name: w.ns}, w.ref("nowhere.dev", "Thing", "x"),
	}
	w.untilHidden(service("released"))
	// The app has not applied the Namespace, so Prune returns it as gone and does not delete it.
	w.prune(all, service("plain"), service("released"), service("moved"), service("never-was"), rollout.Ref{Kind: "Namespace", Name: w.ns},
		w.ref("nowhere.dev", "Thing", "x"))
	for name, want := range map[string]bool{"plain": false, "kept": true, "released": true, "moved": true} {
		_, err := w.cluster.Kube.CoreV1().Services(w.ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) == want {
			t.Errorf("service %s: %v, want it to exist: %v", name, err, want)
		}
	}
	made := w.requests(func() {
		w.untilHidden(service("plain"))
		w.prune(all[:6], service("plain"), service("released"), service("moved"), service("never-was"))
	})
	if made.Writes > 0 || made.Reads > 0 {
		t.Errorf("pruning objects that are gone or kept took requests: %+v", made)
	}
}

func TestPruneKeepsConfigurationOfLivePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	version := func(v string) string {
		return strings.ReplaceAll(documents(coreManifest("ConfigMap", "config-@", "data: {version: @}"),
			coreManifest("Secret", "key-@", "stringData: {version: @}"), `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: shop, image: "shop:@", envFrom: [{configMapRef: {name: config-@}}]}]
      volumes: [{name: key, projected: {sources: [{secret: {name: key-@}}]}}]`), "@", v)
	}
	config, key := w.ref("", "ConfigMap", "config-v1"), w.ref("", "Secret", "key-v1")
	w.apply("shop", version("v1"))
	w.complete("shop", "shop")
	// The pods of v2 never become ready, so the pods and the configuration of v1 stay.
	w.apply("shop", strings.Replace(version("v2"), "shop:v2", "shop:v2-neverready", 1))
	w.until("both versions", func() (bool, string) { return len(w.observe("shop", "shop").Revisions) == 2, "" })
	w.prune([]rollout.Ref{config, key})
	w.apply("shop", version("v2"))
	w.until("v1 being gone", func() (bool, string) {
		gone, kept, err := w.Prune(context.Background(), "shop", []rollout.Ref{config, key})
		return len(gone) == 2 && err == nil, strings.Join(kept, "; ")
	})
	_, err := w.cluster.Kube.CoreV1().ConfigMaps(w.ns).Get(context.Background(), "config-v1", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("config-v1 is still there (%v)", err)
	}
	w.complete("shop", "shop")
}

// TestPruneOfAnUnreadableKind checks that objects of other kinds are deleted even if one kind cannot be listed.
func TestPruneOfAnUnreadableKind(t *testing.T) {
	t.Parallel()
	for code, reason := range map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	} {
		w := newWorld(t)
		w.apply("shop", coreManifest("ConfigMap", "then", ""))
		w.faulty().spoil(func(rw http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.Contains(r.URL.Path, "/leases") {
				fail(rw, code, reason, "conversion webhook is down")
				return true
			}
			return false
		})
		then := w.ref("", "ConfigMap", "then")
		gone, _, err := w.Prune(t.Context(), "shop", []rollout.Ref{w.ref("coordination.k8s.io", "Lease", "old"), then})
		compare.CheckError(t, "Prune", err, "Lease "+w.ns+"/old: ")
		compare.CheckNamed(t, "pruned", []rollout.Ref{then}, gone)
	}
}

// TestPruneListsWhatIsStillThere checks that an object with a finalizer is returned as kept, with the reason, until the
// finalizer is removed. After a refused deletion, the other deletions continue.
func TestPruneListsWhatIsStillThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := func(name string) string { return coreManifest("ConfigMap", name, "") }
	w.apply("shop", documents(strings.Replace(config("held"), "NS", "NS, finalizers: [example.com/wait]", 1), config("refused"),
		config("then")))
	of := func(name string) rollout.Ref { return w.ref("", "ConfigMap", name) }
	w.faulty().once(http.MethodDelete, "/refused", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		fail(rw, http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "guard" denied the request: it is in use`)
	})
	gone, kept, err := w.Prune(t.Context(), "shop", []rollout.Ref{of("held"), of("refused"), of("then")})
	compare.CheckError(t, "Prune", err, "ConfigMap "+w.ns+"/refused: admission webhook")
	held := []string{"ConfigMap " + w.ns + "/held is being deleted, and waits for its finalizers: example.com/wait"}
	compare.Check(t, []rollout.Ref{of("then")}, gone)
	compare.Check(t, held, kept)
	w.until("the deletion being seen", func() (bool, string) {
		t, is := rollout.Find(w.Observe("shop", nil, nil).Troubled, func(t rollout.Trouble) bool { return t.Ref == of("held") })
		return is && strings.Contains(t.Message, "example.com/wait"), t.Message
	})
	w.wantWrites(0, "pruning an object that is being deleted", func() { w.prune([]rollout.Ref{of("held")}) })
	w.kubectl("", "patch", "configmap", "held", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	w.untilHidden(of("held"))
	w.prune([]rollout.Ref{of("held")}, of("held"))
}
