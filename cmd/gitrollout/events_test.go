package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// runningWorld returns a world with its first version deployed. Its loop runs on the real clock, so that the times of records and of the
// cluster's Events can be compared.
func runningWorld(t *testing.T, interval time.Duration) (*loopWorld, *loopProcess) {
	t.Helper()
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.run(interval)
	w.seen("v1 is healthy", func() bool { return w.state().Phase == rollout.Healthy })
	return w, p
}

// event creates an Event of type Warning about an object, as a Kubernetes controller would.
func (w *loopWorld) event(kind, name, reason string) {
	w.Helper()
	now := metav1.Now()
	must(w, errorOf(w.kube.Kube.CoreV1().Events(w.ns).Create(w.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "test-"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: w.ns, Name: name},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: "says the test", Count: 4, FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})))
}

// TestEvents checks which events of a release are printed, and their order. Only the first of two users has the right to list Events.
func TestEvents(t *testing.T) {
	w, _ := runningWorld(t, 200*time.Millisecond)
	args := func(kubeconfig string, more ...string) []string {
		return append([]string{"events", w.app, "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", kubeconfig}, more...)
	}
	w.pushVersion("v2")
	w.seen("v2 is at its gate", func() bool { return w.state().Phase == rollout.Paused })
	pod := w.pods()["v2"][0]
	set := pod[:strings.LastIndex(pod, "-")]
	w.event("Pod", set+"-gone1", "BackOff")
	w.event("Pod", w.app+"-other-0", "Foreign")
	w.event("Service", w.app, "Syncing")
	viewer, text := w.viewer(), ""
	created := "ReplicaSet " + w.ns + "/" + set + " SuccessfulCreate: Created pod: " + set
	await(t, "the events of Kubernetes' controllers", func() bool {
		text = wantExit(t, exitOK, args(viewer)...)
		return strings.Contains(text, created) && strings.Contains(text, "ScalingReplicaSet: Scaled up replica set "+set)
	})
	w.wantText(text, "  Pod "+w.ns+"/"+set+"-gone1 BackOff 4 times: says the test\n", "Service "+w.ns+"/"+w.app+" Syncing 4 times")
	at := func(part string) int { return strings.Index(text, part) }
	if begin := at("  Progressing at step 1/2"); begin < 0 || begin > at(created) || at("  Paused at step 2/2") > at("-gone1 BackOff") {
		t.Errorf("the order is wrong:\n%s", text)
	}
	if at("Foreign") >= 0 || at("Note") >= 0 {
		t.Errorf("there is another app's event, or a note:\n%s", text)
	}
	w.wantText(wantExit(t, exitOK, args(viewer, "-o", "json")...), `"object": "Pod `+w.ns+"/"+set+`-gone1",`, `"type": "Warning"`,
		`"count": 4`, `"phase": "Paused"`)

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "apps"}, Verbs: []string{"get", "list", "watch"}, Resources: []string{
			"pods", "deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions", "namespaces"}}}}
	must(t, errorOf(w.kube.Kube.RbacV1().Roles(w.ns).Create(t.Context(), role, metav1.CreateOptions{})))
	limited := w.reader("limited", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pods"})
	text = strings.Join(strings.Fields(wantExit(t, exitOK, args(limited)...)), " ")
	w.wantText(text, "Paused at step 2/2", `cannot list resource "events" in API group "" in the namespace "`+w.ns+`"`,
		"allow this user to list events, as the ClusterRole view does")
}
