package e2e

import (
	"encoding/base64"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// charted returns the files of an app whose kustomization renders a chart with the given image tag.
func charted(version string) map[string]string {
	files := map[string]string{
		"kustomization.yaml":     "helmCharts:\n- {name: web, releaseName: shop, valuesInline: {version: " + version + "}}\n",
		"charts/web/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"charts/web/values.yaml": "version: none\npassword: mine\n",
		"charts/web/templates/migrate.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: migrate\n" +
			"  annotations: {helm.sh/hook: pre-delete}\n",
		"charts/web/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: auth}\n" +
			"stringData: {password: {{ .Values.password | default (randAlphaNum 8) }}}\n",
	}
	app := shop{version: "{{ .Values.version }}", replicas: "replicas: 2", strategy: canary("", "setWeight: 50", "pause: {}")}
	for name, content := range app.files() {
		if name != "kustomization.yaml" {
			files["charts/web/templates/"+name] = content
		}
	}
	return files
}

// TestChartIsReleased deploys a chart and releases its next version in steps. If the chart renders a different random value each time, the
// app is held (State.Held), and its objects do not change.
func TestChartIsReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, charted("v1")).start()
	w.awaitHealthy(w.repo.Ref("main"))
	w.release("v2", charted("v2"))
	compare.CheckNamed(t, "the image after the release", "shop:v2", w.image())
	compare.CheckNamed(t, "a hook for another time", "", w.kubectl("get", "configmap", "migrate", "--ignore-not-found", "-o", "name"))

	bad := charted("v3")
	bad["charts/web/values.yaml"] = "version: none\n"
	w.push("a password by chance", bad)
	held := w.await("held", func(s rollout.State) bool { return s.Held != nil }).Held
	want := "charts/web/templates/secret.yaml: Secret/auth: stringData.password would differ at each render (randAlphaNum); " +
		"set password in the values"
	compare.Contains(t, held.Message, want)
	password := w.kubectl("get", "secret", "auth", "-o", "jsonpath={.data.password}")
	compare.CheckNamed(t, "the Secret's password", base64.StdEncoding.EncodeToString([]byte("mine")), password)
	w.push("the value is set", charted("v2"))
	w.await("not held", func(s rollout.State) bool { return s.Held == nil && s.Phase == rollout.Healthy })
}
