package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestSecretMadeOnce checks a Secret with a random password from a chart. gitrollout generates another password only after the Secret is
// deleted; a restart generates none. No output shows the password. A commit without the Secret does not delete the Secret.
func TestSecretMadeOnce(t *testing.T) {
	const chart = "charts/db/"
	files := with(version("v1", halfThenGate), map[string]string{
		"kustomization.yaml": `resources: [app.yaml, service.yaml, rollout.yaml]
helmCharts: [{name: db, releaseName: db}]
patches:
- target: {kind: Secret}
  patch: '{apiVersion: v1, kind: Secret, metadata: {name: x, annotations: {gitrollout.dev/create-only: "true"}}}'
`,
		chart + "Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		chart + "templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\n" +
			"stringData: {password: drawn-{{ randAlphaNum 24 }}}\n",
	})
	w := newLoopWorld(t, files)
	secrets := w.kube.Kube.CoreV1().Secrets(w.ns)
	password := func() string {
		t.Helper()
		s, err := secrets.Get(t.Context(), "drawn", metav1.GetOptions{})
		must(t, err)
		return string(s.Data["password"])
	}
	p := w.startHealthy()
	drawn := password()
	if len(drawn) != 30 || strings.Trim(drawn, "drawn-") == "" {
		t.Fatalf("it is %q", drawn)
	}
	w.wantNoWrites(p)
	p = p.restart()
	p.passWell(3)
	w.wantNoWrites(p)
	kubeconfig := "--kubeconfig=" + w.api.kubeconfig
	w.wantText(w.said("diff", w.app, kubeconfig), "Secret/"+w.ns+"/drawn is create-only: its content is not compared")
	for _, args := range [][]string{{"get", w.app}, {"validate"}, {"explain", w.app}} {
		if out := w.said(args...); strings.Contains(out, "password") {
			t.Errorf("%s says %s", args, out)
		}
	}
	w.wantText(w.said("get", w.app), "Secret drawn: its content is generated at random when the Secret")
	w.wantText(w.said("doctor", kubeconfig), "git.warnings", w.app+": Secret drawn: its content is generated")
	if out := w.said("render", w.app); strings.Contains(out, "password") || !strings.Contains(out, "name: drawn") {
		t.Errorf("render prints %s", out)
	}
	must(t, secrets.Delete(t.Context(), "drawn", metav1.DeleteOptions{}))
	p.await("it is made again", func(rollout.State) bool {
		_, err := secrets.Get(t.Context(), "drawn", metav1.GetOptions{})
		return err == nil
	})
	if again := password(); again == drawn {
		t.Errorf("it is %s again", again)
	}
	drawn = password()
	p.awaitSource(w.app, w.push("without it", version("v1", halfThenGate)))
	p.passWell(5)
	if password() != drawn {
		t.Error("it is another one")
	}
	out := w.said("diff", w.app, kubeconfig)
	w.wantText(out, "drawn has left Git, and is kept (gitrollout.dev/create-only: true)")
	if strings.Contains(out, "---") {
		t.Errorf("diff of the kept object:\n%s", out)
	}
}
