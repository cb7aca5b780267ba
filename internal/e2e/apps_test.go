package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shop is an app with one workload, two Services and a Rollout document.
type shop struct {
	kind     string // of the workload, "" for a Deployment
	api      string // apiVersion of the workload, "" for apps/v1
	version  string
	replicas string // a line such as "replicas: 5"; "" if an autoscaler sets the number
	strategy string // spec.strategy of the Rollout document, indented by four spaces
	extra    string // lines of the workload's spec, indented by two spaces
	rollout  string // more lines of the Rollout's spec
	plain    bool   // without a Rollout document
	pod      string // lines of the pod's spec, indented by six spaces

	more map[string]string // content of further files by name; the kustomization lists these files
}

// newShop returns version v1 of the test app with n replicas and a canary strategy with the given fields and steps.
func newShop(n int, fields string, steps ...string) shop {
	return shop{version: "v1", replicas: fmt.Sprint("replicas: ", n), strategy: canary(fields, steps...)}
}

func (s shop) files() map[string]string {
	kind, api := cmp.Or(s.kind, "Deployment"), cmp.Or(s.api, "apps/v1")
	document := "- rollout.yaml\n"
	if s.plain {
		document = ""
	}
	files := map[string]string{
		"kustomization.yaml": "resources:\n- shop.yaml\n" + document + "- services.yaml\n",
		"shop.yaml": fmt.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: shop
spec:
%s%s  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
%s      containers:
      - name: shop
        image: shop:%s
        ports: [{containerPort: 8080}]
`, api, kind, indent(s.replicas), s.extra, s.pod, s.version),
		"rollout.yaml": fmt.Sprintf(`apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata:
  name: shop
spec:
  workloadRef: {apiVersion: %s, kind: %s, name: shop}
%s  strategy:
%s`, api, kind, s.rollout, s.strategy),
		"services.yaml": service("shop") + "---\n" + service("shop-preview"),
	}
	for _, name := range slices.Sorted(maps.Keys(s.more)) {
		files["kustomization.yaml"] += "- " + name + "\n"
		files[name] = s.more[name]
	}
	return files
}

func indent(line string) string {
	if line == "" {
		return ""
	}
	return "  " + line + "\n"
}

func service(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %s
spec:
  selector: {app: shop}
  ports: [{port: 80, targetPort: 8080}]
`, name)
}

// canary returns a canary strategy in YAML, with the given steps and the given further fields.
func canary(fields string, steps ...string) string {
	var b strings.Builder
	b.WriteString("    canary:\n")
	for _, line := range strings.Split(fields, "\n") {
		if line != "" {
			b.WriteString("      " + line + "\n")
		}
	}
	b.WriteString("      steps:\n")
	for _, step := range steps {
		b.WriteString("      - " + step + "\n")
	}
	return b.String()
}

func (s shop) at(version string) shop { s.version = version; return s }
