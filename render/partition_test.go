package render

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// ofKind returns an app with a workload of a kind, its Rollout and an autoscaler.
func ofKind(apiVersion, kind, strategy, more string) map[string]string {
	return map[string]string{
		"kustomization.yaml": "resources: [workload.yaml, rollout.yaml, hpa.yaml]\n",
		"workload.yaml": "apiVersion: " + apiVersion + "\nkind: " + kind + `
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
` + more + `  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1"}]}
`,
		"rollout.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:\n" +
			"  workloadRef: {apiVersion: " + apiVersion + ", kind: " + kind + ", name: web}\n  strategy: " + strategy + "\n",
		"hpa.yaml": "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n" +
			"  scaleTargetRef: {apiVersion: " + apiVersion + ", kind: " + kind + ", name: web}\n",
	}
}

// TestWorkloadsByTheirFields renders workloads of any kind: the autoscaler decides their replicas, and minReadySeconds
// are in their controller's field.
func TestWorkloadsByTheirFields(t *testing.T) {
	games := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "GameServerSet", Partition: "spec.rollout.canaries", CountsNew: true,
		MinReady: "spec.rollout.minReadySeconds"}
	for name, tc := range map[string]struct {
		apiVersion, kind, strategy, more string
		minReady                         int
		at                               []string // path of minReadySeconds in the object
	}{
		"CloneSet":                       {"apps.kruise.io/v1alpha1", "CloneSet", "{canary: {}}", "  minReadySeconds: 7\n", 7, []string{"spec"}},
		"StatefulSet":                    {"apps.kruise.io/v1beta1", "StatefulSet", "{canary: {}}", "  updateStrategy: {rollingUpdate: {minReadySeconds: 7}}\n", 7, []string{"spec", "updateStrategy", "rollingUpdate"}},
		"StatefulSet, by the document":   {"apps.kruise.io/v1beta1", "StatefulSet", "{canary: {}}\n  minReadySeconds: 8", "", 8, []string{"spec", "updateStrategy", "rollingUpdate"}},
		"GameServerSet":                  {"example.com/v1", "GameServerSet", "{canary: {}}", "  rollout: {minReadySeconds: 7}\n", 7, []string{"spec", "rollout"}},
		"GameServerSet, by the document": {"example.com/v1", "GameServerSet", "{canary: {}}\n  minReadySeconds: 8", "  rollout: {minReadySeconds: 7}\n", 8, []string{"spec", "rollout"}},
	} {
		t.Run(name, func(t *testing.T) {
			app := rollout.App{Name: "demo", Namespace: "shop", Workloads: rollout.PartitionedText([]rollout.Partitioned{games})}
			r, err := New(InProcess{}).Render(newTree(ofKind(tc.apiVersion, tc.kind, tc.strategy, tc.more)), app, rollout.Commit{})
			if err != nil {
				t.Fatal(err)
			}
			group, _, _ := strings.Cut(tc.apiVersion, "/")
			w := rollout.Workload{Kind: tc.kind + "." + group, Namespace: "shop", Name: "web"}
			spec, staged := r.Spec(w)
			if !staged || spec.Partition == nil || spec.Partition.Kind != tc.kind || r.Templates[w] == "" || r.Release() == "" {
				t.Fatalf("%s is staged %t as %+v of %v", w, staged, spec, r.Templates)
			}
			if got, is := r.Workload(w.Ref()); !is || got != w {
				t.Errorf("the render knows it as %v, %t", got, is)
			}
			object := r.ByRef()[w.Ref()]
			if spec.Replicas != nil || object.Map("spec")["replicas"] != nil {
				t.Errorf("under an autoscaler it has %v pods", object.Map("spec")["replicas"])
			}
			if got := object.Map(tc.at...)["minReadySeconds"]; spec.MinReadySeconds != tc.minReady || got != int64(tc.minReady) {
				t.Errorf("minReadySeconds are %d, and %v in the object", spec.MinReadySeconds, got)
			}
			if diff := compare.Diff([]string{"CloneSet/shop/web: replicas are ignored, HorizontalPodAutoscaler/shop/web scales it; leave them out of the manifest"},
				r.Warnings); tc.kind == "CloneSet" && diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCloneSetWithoutADocument checks that it is an ordinary object, except that its version is known.
func TestCloneSetWithoutADocument(t *testing.T) {
	files := ofKind("apps.kruise.io/v1alpha1", "CloneSet", "", "  updateStrategy: {partition: 2}\n")
	files["kustomization.yaml"] = "resources: [workload.yaml, hpa.yaml]\n"
	r, err := New(InProcess{}).Render(newTree(files), rollout.App{Name: "demo", Namespace: "shop"}, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	w, is := r.Workload(rollout.Ref{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"})
	if is || r.Templates[w] == "" || len(r.Specs) > 0 || len(r.Objects) != 2 || r.Release() != "" {
		t.Errorf("it is %+v of %v", r.Specs, r.Templates)
	}
}
