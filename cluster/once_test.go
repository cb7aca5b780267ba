package cluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// wantValue checks that the Secret auth has only the given key, with the given value.
func (w *world) wantValue(what, key, want string) {
	w.t.Helper()
	s, err := w.cluster.Kube.CoreV1().Secrets(w.ns).Get(context.Background(), "auth", metav1.GetOptions{})
	must(w.t, err)
	compare.CheckNamed(w.t, what, map[string][]byte{key: []byte(want)}, s.Data)
}

const (
	anyAuth  = "apiVersion: v1\nkind: Secret\nmetadata: {name: auth, namespace: NS"
	onceAuth = anyAuth + `, annotations: {gitrollout.dev/create-only: "true"}}` + "\n"
)

// TestMadeOnce checks that a missing create-only Secret is created. Later applies keep its content, even if a user has changed the content.
// If Git no longer has the create-only annotation, the content in Git is applied.
func TestMadeOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	secrets := w.cluster.Kube.CoreV1().Secrets(w.ns)
	w.apply("shop", onceAuth+"stringData: {password: first}")
	for range 2 {
		w.wantWrites(0, "another draw", func() { w.apply("shop", onceAuth+"stringData: {password: second, other: x}") })
		w.wantValue("made", "password", "first")
		if w.Keeps(ctx, "shop", w.ref("", "Secret", "auth")) {
			t.Error("the Secret's values stay in memory")
		}
		w.restart()
	}
	s, err := secrets.Get(ctx, "auth", metav1.GetOptions{})
	must(t, err)
	s.Data["password"] = []byte("rotated")
	_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
	must(t, err)
	w.wantWrites(0, "a rotated password", func() { w.apply("shop", onceAuth+"stringData: {password: third}") })
	w.wantValue("rotated by hand", "password", "rotated")
	w.prune([]rollout.Ref{w.ref("", "Secret", "auth")})

	w.apply("shop", anyAuth+"}\nstringData: {password: git}")
	w.wantValue("not create-only any more", "password", "git")
	w.apply("shop", onceAuth+"stringData: {password: fourth}")
	w.wantWrites(0, "the second time", func() { w.apply("shop", onceAuth+"stringData: {password: fifth}") })
	w.wantValue("create-only again", "password", "git")
	w.apply("shop", anyAuth+"}\nstringData: {key: git}")
	w.wantValue("and not again", "key", "git")
	w.prune([]rollout.Ref{w.ref("", "Secret", "auth")}, w.ref("", "Secret", "auth"))
}

// TestMadeOnceByAnother checks that the app adopts a create-only Secret that another writer has created, and keeps its
// content. If the Secret is deleted, the next apply creates it with the content in Git.
func TestMadeOnceByAnother(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	secrets := w.cluster.Kube.CoreV1().Secrets(w.ns)
	immutable := true
	_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "auth"}, Immutable: &immutable,
		StringData: map[string]string{"password": "helm's"}}, metav1.CreateOptions{FieldManager: "helm"})
	must(t, err)
	want := onceAuth + "stringData: {password: drawn}"
	must(t, w.Check(ctx, "shop", w.objects(want)))
	w.apply("shop", want)
	w.wantWrites(0, "the second time", func() { w.apply("shop", want) })
	w.wantValue("taken over", "password", "helm's")
	w.prune([]rollout.Ref{w.ref("", "Secret", "auth")})
	must(t, secrets.Delete(ctx, "auth", metav1.DeleteOptions{}))
	w.untilHidden(w.ref("", "Secret", "auth"))
	w.apply("shop", want)
	w.wantValue("made again", "password", "drawn")
}
