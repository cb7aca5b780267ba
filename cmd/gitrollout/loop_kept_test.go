package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestWhatIsKeptIsSaid removes an object from Git while another app cannot be rendered and may therefore have the same object.
// The object stays, and the record and `gitrollout get` name the reason and a fix. After the fix, the object is pruned.
func TestWhatIsKeptIsSaid(t *testing.T) {
	w, p := newHealthyWorld(t, withExtra(version("v1", halfThenGate)))
	broken := w.app + "-broken"
	w.pushAs(broken, "cannot be built", map[string]string{
		"kustomization.yaml": "resources: [none.yaml]\n", "notes.txt": w.app + "-extra\n",
	})
	w.push("less", version("v1", halfThenGate))
	s := p.await("it says so", func(s rollout.State) bool { return s.Kept != "" })
	text := "ConfigMap " + w.ns + "/" + w.app + "-extra is not deleted: app " + broken + " cannot be rendered, and may have this object"
	w.wantText(s.Kept, text, "correct apps/"+broken)
	w.wantText(w.command(exitOK, "get", w.app), "Warning     ConfigMap", "correct")
	maps := w.kube.Kube.CoreV1().ConfigMaps(w.ns)
	must(t, errorOf(maps.Get(t.Context(), w.app+"-extra", metav1.GetOptions{})))
	w.pushAs(broken, "mended", map[string]string{"kustomization.yaml": "resources: []\n"})
	p.await("nothing is kept", func(s rollout.State) bool { return s.Kept == "" && len(s.Inventory) == 3 })
	if _, err := maps.Get(t.Context(), w.app+"-extra", metav1.GetOptions{}); err == nil {
		t.Error("it is still there")
	}
}

// withExtra adds a ConfigMap that no pod of the app uses.
func withExtra(files map[string]string) map[string]string {
	return with(files, map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, extra.yaml]\n",
		"extra.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: APP-extra}\n",
	})
}
