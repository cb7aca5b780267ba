package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
)

func TestApplyWritesEachObjectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	count := len(w.objects(shop))
	w.wantWrites(count, "the first apply", func() {
		if got := w.apply("shop", shop); len(got.Written) != count {
			t.Errorf("created %v, want all %d", got.Written, count)
		}
	})
	w.complete("shop", "shop")
	before := w.Stats()
	for range 3 {
		if got := w.apply("shop", shop); len(got.Unchanged) != count {
			t.Errorf("the second apply wrote %v", got.Written)
		}
	}
	if after := w.Stats(); after.Writes != before.Writes || after.DryRuns != before.DryRuns {
		t.Errorf("applying the same objects again sent requests: %+v, then %+v", before, after)
	}
	d := w.deployment("shop")
	if d.Labels[rollout.LabelApp] != "shop" || d.Annotations[rollout.AnnotationCluster] != "test" {
		t.Errorf("labels %v and annotations %v do not say whose it is", d.Labels, d.Annotations)
	}
	if _, marked := d.Spec.Template.Labels[rollout.LabelApp]; marked {
		t.Error("the pod template carries the app's label")
	}
}

func TestRestartWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", shop)
	w.complete("shop", "shop")
	w.restart()
	before := w.Stats()
	got := w.apply("shop", shop)
	if after := w.Stats(); got.Changed() != 0 || after.Writes != 0 || after.DryRuns != 0 {
		t.Errorf("a new process wrote %v (%+v, before %+v)", got.Written, after, before)
	}
}

func TestRestartSeesWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", shop)
	w.edit("shop", `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"shop:evil"}]}}}}`)
	w.restart()
	got := w.apply("shop", shop)
	if len(got.Written) != 1 || got.Written[0].Kind != "Deployment" {
		t.Errorf("configured %v, want the edited Deployment", got.Written)
	}
	if image := w.deployment("shop").Spec.Template.Spec.Containers[0].Image; image != "shop:v1" {
		t.Errorf("image is %s", image)
	}
}

func TestDriftIsHealed(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.apply("shop", shop)
	core := w.cluster.Kube.CoreV1()
	edits := map[string]func() error{
		"an edited field": func() error { w.edit("shop", `{"metadata":{"labels":{"team":"b"}}}`); return nil },
		"a removed field": func() error {
			_, err := core.ConfigMaps(w.ns).Patch(ctx, "shop-config", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/LOG"}]`),
				metav1.PatchOptions{})
			return err
		},
		"an edited selector": func() error {
			_, err := core.Services(w.ns).Patch(ctx, "shop", types.MergePatchType, []byte(`{"spec":{"selector":{"app":"other"}}}`),
				metav1.PatchOptions{})
			return err
		},
		"an added selector key": func() error {
			_, err := core.Services(w.ns).Patch(ctx, "shop", types.MergePatchType, []byte(`{"spec":{"selector":{"x":"y"}}}`), metav1.PatchOptions{})
			return err
		},
		"our label removed": func() error {
			_, err := core.Services(w.ns).Patch(ctx, "shop", types.MergePatchType, []byte(`{"metadata":{"labels":{"gitrollout.dev/app":null}}}`),
				metav1.PatchOptions{})
			return err
		},
		"a deletion": func() error { return core.Services(w.ns).Delete(ctx, "shop", metav1.DeleteOptions{}) },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			before := w.changes.of("shop")
			must(t, edit())
			w.until("OnChange", func() (bool, string) { return w.changes.of("shop") > before, "it was not called" })
			w.wantWrites(1, "healing", func() {
				if got := w.healed("shop", shop); got.Changed() != 1 {
					t.Errorf("wrote %+v, want one object", got)
				}
			})
		})
	}
	d := w.deployment("shop")
	if d.Labels["team"] != "a" {
		t.Errorf("label team is %q", d.Labels["team"])
	}
	s, err := core.Services(w.ns).Get(ctx, "shop", metav1.GetOptions{})
	if err != nil || len(s.Spec.Selector) != 1 || s.Spec.Selector["app"] != "shop" {
		t.Errorf("selector is %v (%v)", s.Spec.Selector, err)
	}
}

func TestForeignFieldsAreLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	w.apply("shop", withoutReplicas)
	w.complete("shop", "shop")
	deployments := w.cluster.Kube.AppsV1().Deployments(w.ns)
	_, err := deployments.UpdateScale(ctx, "shop", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: w.ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 3},
	}, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	must(t, err)
	w.edit("shop", `{"metadata":{"annotations":{"example.com/note":"by hand"}}}`)
	w.until("three pods", func() (bool, string) {
		seen := w.complete("shop", "shop")
		return seen.Replicas == 3 && seen.Revisions[0].Ready() == 3, "not yet"
	})
	w.wantWrites(0, "an apply after foreign changes", func() { w.apply("shop", withoutReplicas) })
	w.restart()
	w.wantWrites(0, "an apply of a new process after foreign changes", func() { w.apply("shop", withoutReplicas) })
	if d := w.deployment("shop"); *d.Spec.Replicas != 3 || d.Annotations["example.com/note"] != "by hand" {
		t.Errorf("replicas %d, annotations %v", *d.Spec.Replicas, d.Annotations)
	}
}

const withoutReplicas = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NS}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:v1"}]}
`

// TestObjectInTwoAppsIsRefusedAndMayMove checks that the second app does not get the object, before and after a
// restart.
func TestObjectInTwoAppsIsRefusedAndMayMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: NS}\nspec: {ports: [{port: 80}]}"
	ref := w.ref("", "Service", "shop")
	w.wants("a", service)
	w.wants("b", service)
	w.apply("a", service)
	for _, process := range []string{"first", "second"} {
		before := w.Stats()
		for verb, refused := range map[string]error{"Apply": w.tried("b", service), "Check": w.Check(t.Context(), "b", w.objects(service))} {
			var refusal *cluster.Error
			if !errors.As(refused, &refusal) || refusal.Reason != cluster.Contested ||
				!strings.Contains(refused.Error(), "is in app b and in app a") {
				t.Errorf("%s of the %s process says %v", verb, process, refused)
			}
		}
		w.apply("a", service)
		if after := w.Stats(); after.Writes != before.Writes || after.DryRuns != before.DryRuns {
			t.Errorf("two apps want one object: %+v, then %+v", before, after)
		}
		w.restart()
	}
	w.wanted["a"] = nil // Git removes it from a: it moves, and may move back later
	w.apply("b", service)
	if gone, kept, err := w.Prune(t.Context(), "a", []rollout.Ref{ref}); len(gone) != 1 || len(kept) != 0 || err != nil {
		t.Errorf("gone %v, kept %v, %v", gone, kept, err)
	}
	w.wantWrites(0, "an apply of the app that has it", func() { w.apply("b", service) })
	w.wants("a", service)
	if err := w.tried("a", service); err == nil {
		t.Error("the first app takes it back though the second has it")
	}
	w.wanted["b"] = nil
	w.apply("a", service)
	w.wantWrites(0, "an apply of the app that has it again", func() { w.apply("a", service) })
}

// TestAnObjectWaitsUntilItsAppIsKnown checks that a new process waits until the other app's objects are known.
func TestAnObjectWaitsUntilItsAppIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: NS}\nspec: {ports: [{port: 80}]}"
	w.apply("a", service)
	w.unknown = errors.New("is still being read")
	var refusal *cluster.Error
	if err := w.tried("b", service); !errors.As(err, &refusal) || !refusal.Temporary() {
		t.Errorf("the error is %v", err)
	}
}

// TestNamespaceOfSeveralApps checks a Namespace that several overlays share by their base.
func TestNamespaceOfSeveralApps(t *testing.T) {
	w := newWorld(t)
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS, labels: {team: a}}"
	w.wants("a", namespace)
	w.apply("a", namespace)
	w.wantWrites(0, "the same Namespace in a second app", func() { w.apply("b", namespace) })
	other := strings.Replace(namespace, "team: a", "team: b", 1)
	if err := w.tried("b", other); err == nil {
		t.Error("the second app writes another label on it")
	}
	w.wants("a", other) // in both at once: the first one writes it
	w.wantWrites(0, "the new label in the second app", func() { w.apply("b", other) })
	w.wantWrites(1, "the new label in the first app", func() { w.apply("a", other) })
}

// wants sets Git's objects of an app.
func (w *world) wants(app, manifests string) { w.wanted[app] = w.objects(manifests) }

func (w *world) tried(app, manifests string) error {
	_, err := w.Apply(context.Background(), app, w.objects(manifests))
	return err
}
