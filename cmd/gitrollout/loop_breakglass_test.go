package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBreakGlass checks that a user can abort a release by an annotation on its workload while Git is unreachable. When Git is reachable
// again, the rollback is recorded and the annotation is removed.
func TestBreakGlass(t *testing.T) {
	w, p, two := newPausedWorld(t)
	recorded := w.repo.Ref(stateBranch)
	abort := func(want exitCode, args ...string) string {
		t.Helper()
		args = append(args, "--break-glass", "--kubeconfig", w.api.kubeconfig, "--cluster", "test")
		return wantExit(t, want, append([]string{"abort", w.app}, args...)...)
	}
	glass := func() string { return w.deployment().Annotations[rollout.AnnotationBreakGlass] }

	w.wantText(abort(exitUsage), "--break-glass needs --reason")
	w.server.Fault(gittest.Faults{Status: http.StatusServiceUnavailable})
	w.wantText(abort(exitOK, "--reason", "v2 burns"), "annotated Deployment "+w.ns+"/"+w.app, "gitrollout get "+w.app+" --cluster-only")
	w.wantText(glass(), `"release":"`+string(two.Release.Hash)+`"`, `"reason":"v2 burns"`, `"by":"`)
	w.seen("the rollback", func() bool { _ = p.pass(); return w.image() == "v1" })
	third := w.pushVersion("v3")
	_ = p.passes(10)
	w.wantImage("v1")
	w.wantRecorded(recorded)
	w.wantText(glass(), "v2 burns")

	w.server.Fault(gittest.Faults{})
	w.skew += time.Minute
	p.awaitPaused(third)
	w.wantHistory(recorded, "APP back to", "APP release", "APP step 2/2 pause")
	w.seen("the removal of the annotation", func() bool { _ = p.pass(); return glass() == "" })
	w.wantText(w.command(exitOK, "history", w.app), "aborted by break glass of ", ": v2 burns")

	// Annotate the Deployment by hand. The admission policy refuses a request in another user's name. Without the policy, gitrollout
	// ignores requests for another attempt or another version, and text that is not JSON. `get` shows the ignored annotation.
	s := w.state()
	annotate := func(value string) error {
		annotations := map[string]string{rollout.AnnotationBreakGlass: value}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
		must(t, err)
		_, err = w.kube.Kube.AppsV1().Deployments(w.ns).Patch(t.Context(), w.app, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	request := func(release rollout.Hash, serial int) string {
		return rollout.BreakGlass{Release: release, Serial: serial, By: "eve", Reason: "v3 burns", At: rollout.Second(w.now())}.Encode()
	}
	end := w.breakGlassPolicy()
	tries := 0
	w.seen("the policy's refusal", func() bool { // a new value each time, because the policy checks only changes
		tries++
		return apierrors.IsForbidden(annotate(request("h1-other", s.Serial+tries)))
	})
	end()
	for _, value := range []string{request(s.Release.Hash, s.Release.Serial-1), request("h1-other", s.Serial), "v3 burns"} {
		w.seen("the annotation", func() bool { return annotate(value) == nil && glass() == value })
		_ = p.passes(5)
		if now := w.state(); now.Serial != s.Serial {
			t.Errorf("%s moved the release: %s", value, rollout.Printable(now.Reason))
		}
		shown := strings.Join(strings.Fields(w.clusterCommand(exitOK, "get", w.app)), " ")
		w.wantText(shown, "annotation "+rollout.AnnotationBreakGlass, "the annotation is ignored")
	}
}

// breakGlassPolicy creates the admission policy in deploy/kubernetes/break-glass, for the test's namespace only. end deletes the policy.
func (w *loopWorld) breakGlassPolicy() (end func()) {
	w.Helper()
	data, err := os.ReadFile("../../deploy/kubernetes/break-glass/policy.yaml")
	must(w, err)
	first, second, _ := strings.Cut(string(data), "\n---\n")
	var policy admissionv1.ValidatingAdmissionPolicy
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	must(w, yaml.UnmarshalStrict([]byte(first), &policy))
	must(w, yaml.UnmarshalStrict([]byte(second), &binding))
	policy.Name, binding.Name, binding.Spec.PolicyName = w.ns, w.ns, w.ns
	binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}}}
	api := w.kube.Kube.AdmissionregistrationV1()
	_, err = api.ValidatingAdmissionPolicies().Create(w.Context(), &policy, metav1.CreateOptions{})
	must(w, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(w.Context(), &binding, metav1.CreateOptions{})
	must(w, err)
	end = func() {
		_ = api.ValidatingAdmissionPolicyBindings().Delete(context.Background(), w.ns, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(context.Background(), w.ns, metav1.DeleteOptions{})
	}
	w.Cleanup(end)
	return end
}
