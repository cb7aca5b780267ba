package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
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
	made := w.requests(func() {
		for range 3 {
			if got := w.apply("shop", shop); len(got.Unchanged) != count {
				t.Errorf("the second apply wrote %v", got.Written)
			}
		}
	})
	if made.Writes > 0 || made.DryRuns > 0 {
		t.Errorf("applying the same objects again sent requests: %+v", made)
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
	got := w.apply("shop", shop)
	if made := w.Stats(); got.Changed() != 0 || made.Writes != 0 || made.DryRuns != 0 {
		t.Errorf("a new process wrote %v (%+v)", got.Written, made)
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
	w := newWorld(t)
	w.apply("shop", shop)
	edits := map[string]string{ // arguments of kubectl
		"an edited field":       "label deployment shop team=b --overwrite",
		"a removed field":       `patch configmap shop-config --field-manager=x --type=json -p [{"op":"remove","path":"/data/LOG"}]`,
		"an edited selector":    `patch service shop --field-manager=x --type=merge -p {"spec":{"selector":{"app":"other"}}}`,
		"an added selector key": `patch service shop --field-manager=x --type=merge -p {"spec":{"selector":{"x":"y"}}}`,
		"our label removed":     "label service shop --field-manager=x gitrollout.dev/app-",
		"a deletion":            "delete service shop",
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			before := w.changes.of("shop")
			w.kubectl("", strings.Fields(edit)...)
			w.until("OnChange", func() (bool, string) { return w.changes.of("shop") > before, "it was not called" })
			w.wantWrites(1, "healing", func() {
				if got := w.healed("shop", shop); got.Changed() != 1 {
					t.Errorf("wrote %+v, want one object", got)
				}
			})
		})
	}
	if team := w.deployment("shop").Labels["team"]; team != "a" {
		t.Errorf("label team is %q", team)
	}
	compare.CheckNamed(t, "selector", map[string]string{"app": "shop"}, w.service("shop").Spec.Selector)
}

func TestForeignFieldsAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("shop", withoutReplicas)
	w.complete("shop", "shop")
	w.scale("shop", 3)
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

// TestObjectInTwoAppsIsRefusedAndMayMove checks that a second app cannot apply an object of the first app, even after a restart. Once the
// first app no longer has the object in Git, the second app may apply it.
func TestObjectInTwoAppsIsRefusedAndMayMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, ref := serviceManifest("shop"), w.ref("", "Service", "shop")
	w.wants("a", service)
	w.wants("b", service)
	w.apply("a", service)
	for _, process := range []string{"first", "second"} {
		made := w.requests(func() {
			for verb, err := range map[string]error{"Apply": w.tried("b", service), "Check": w.Check(t.Context(), "b", w.objects(service))} {
				wantRefusal(t, verb+" of the "+process+" process", err, cluster.Contested, "is in app b and in app a")
			}
			w.apply("a", service)
		})
		if made.Writes > 0 || made.DryRuns > 0 {
			t.Errorf("two apps want one object: %+v", made)
		}
		w.restart()
	}
	w.wanted["a"] = nil // Git no longer has the object in app a, so app b may apply it
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

// TestAnObjectWaitsUntilItsAppIsKnown checks that an app cannot take over an object while the newest commit of the object's app is unknown.
func TestAnObjectWaitsUntilItsAppIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("a", serviceManifest("shop"))
	w.unknown = errors.New("is still being read")
	var refusal *cluster.Error
	if err := w.tried("b", serviceManifest("shop")); !errors.As(err, &refusal) || !refusal.Temporary() {
		t.Errorf("the error is %v", err)
	}
}

// TestNamespaceOfSeveralApps checks that several apps may apply a Namespace with equal content, as overlays of one base do.
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
	w.wants("a", other) // both apps have the new label in Git, and the first app writes it
	w.wantWrites(0, "the new label in the second app", func() { w.apply("b", other) })
	w.wantWrites(1, "the new label in the first app", func() { w.apply("a", other) })
}

// wants sets the objects that an app has in Git's newest commit.
func (w *world) wants(app, manifests string) { w.wanted[app] = w.objects(manifests) }

func (w *world) tried(app, manifests string) error {
	_, err := w.Apply(context.Background(), app, w.objects(manifests))
	return err
}
