package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestSecretMadeOnce generates a chart's random password when the app is first applied. Neither a new process nor the
// next version generates another, no output shows it, and it stays when it leaves Git.
func TestSecretMadeOnce(t *testing.T) {
	const chart = "charts/db/"
	files := with(version("v1", halfThenGate), map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml]\nhelmCharts: [{name: db, releaseName: db}]\n" +
			"patches: [{target: {kind: Secret}, patch: '{apiVersion: v1, kind: Secret, metadata: {name: x, annotations: {gitrollout.dev/create-only: \"true\"}}}'}]\n",
		chart + "Chart.yaml":            "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		chart + "templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\nstringData: {password: drawn-{{ randAlphaNum 24 }}}\n",
	})
	w := newLoopWorld(t, files)
	secrets := w.kube.Kube.CoreV1().Secrets(w.ns)
	password := func() string {
		t.Helper()
		s, err := secrets.Get(t.Context(), "drawn", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Data["password"])
	}
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	drawn := password()
	if len(drawn) != 30 || strings.Trim(drawn, "drawn-") == "" {
		t.Fatalf("it is %q", drawn)
	}
	w.wantNoWrites(p)
	p.end()
	p = w.start()
	if err := p.passes(3); err != nil {
		t.Error(err)
	}
	w.wantNoWrites(p)
	cluster := []string{"--kubeconfig", w.api.kubeconfig}
	w.wantText(w.said(append([]string{"diff", w.app}, cluster...)...), "Secret/"+w.ns+"/drawn is made once: its content is not compared")
	for _, command := range []string{"get", "validate", "explain"} {
		if out := w.said(command); strings.Contains(out, "password") {
			t.Errorf("%s says %s", command, out)
		}
	}
	w.wantText(w.said("get"), "Secret drawn: its content is drawn at random when it is made, and")
	w.wantText(w.said(append([]string{"doctor"}, cluster...)...), "git.warnings", w.app+": Secret drawn: its content is drawn")
	if out := w.said("render", w.app); strings.Contains(out, "password") || !strings.Contains(out, "name: drawn") {
		t.Errorf("render prints %s", out)
	}
	if err := secrets.Delete(t.Context(), "drawn", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("it is made again", func(rollout.State) bool {
		_, err := secrets.Get(t.Context(), "drawn", metav1.GetOptions{})
		return err == nil
	})
	if again := password(); again == drawn {
		t.Errorf("it is %s again", again)
	}
	drawn = password()
	w.push("without it", version("v1", halfThenGate))
	p.await("the commit is followed", func(s rollout.State) bool { return s.Source == w.repo.Head() })
	if err := p.passes(5); err != nil {
		t.Error(err)
	}
	if password() != drawn {
		t.Error("it is another one")
	}
	if out := w.said(append([]string{"diff", w.app}, cluster...)...); !strings.Contains(out, "drawn has left Git, and is kept (gitrollout.dev/create-only: true)") || strings.Contains(out, "---") {
		t.Errorf("diff of the kept object:\n%s", out)
	}
}
