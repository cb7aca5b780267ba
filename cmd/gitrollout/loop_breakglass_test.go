package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBreakGlass checks that a user aborts a release with the rights on its workload while Git is away. The rollback is recorded once Git
// answers, and the annotation is removed. A request for another attempt is void and shown.
func TestBreakGlass(t *testing.T) {
	w, p, two := newPausedWorld(t)
	recorded := w.repo.Ref(stateBranch)
	abort := func(want exitCode, args ...string) string {
		t.Helper()
		return wantExit(t, want, append([]string{"abort", w.app, "--break-glass", "--kubeconfig", w.api.kubeconfig, "--cluster", "test"}, args...)...)
	}
	glass := func() string { return w.deployment().Annotations[rollout.AnnotationBreakGlass] }

	w.breakGlassPolicy()
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

	// Requests by hand: another attempt, another version, and no JSON. They are ignored and shown.
	s := w.state()
	for _, value := range []string{
		rollout.BreakGlass{Release: s.Release.Hash, Serial: s.Release.Serial - 1}.Encode(),
		rollout.BreakGlass{Release: "h1-other", Serial: s.Serial}.Encode(), "v3 burns",
	} {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{rollout.AnnotationBreakGlass: value}}})
		must(t, err)
		_, err = w.kube.Kube.AppsV1().Deployments(w.ns).Patch(t.Context(), w.app, types.MergePatchType, body, metav1.PatchOptions{})
		must(t, err)
		w.seen("the annotation", func() bool { return glass() == value })
		_ = p.passes(5)
		if now := w.state(); now.Serial != s.Serial {
			t.Errorf("%s moved the release: %s", value, rollout.Printable(now.Reason))
		}
		shown := strings.Join(strings.Fields(w.clusterCommand(exitOK, "get", w.app)), " ")
		w.wantText(shown, "annotation "+rollout.AnnotationBreakGlass, "it is ignored")
	}
}
