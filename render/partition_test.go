package render_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// ofKind returns the files of an app with a workload of the given kind, its Rollout, and an HPA. The last argument adds fields to the
// workload's spec.
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

// TestWorkloadsByTheirFields checks workloads of kinds with a partition. An HPA sets their replicas. The description of
// each kind names the field for minReadySeconds.
func TestWorkloadsByTheirFields(t *testing.T) {
	games := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "GameServerSet", Partition: "spec.rollout.canaries", CountsNew: true,
		MinReady: "spec.rollout.minReadySeconds"}
	app := demo
	app.Workloads = rollout.PartitionedText([]rollout.Partitioned{games})
	rolling, ofGames := []string{"spec", "updateStrategy", "rollingUpdate"}, []string{"spec", "rollout"}
	const cloneSets, statefulSets = "apps.kruise.io/v1alpha1 CloneSet", "apps.kruise.io/v1beta1 StatefulSet"
	const gameServerSets, seven = "example.com/v1 GameServerSet", "  rollout: {minReadySeconds: 7}\n"
	for name, tc := range map[string]struct {
		kind, strategy, more string
		minReady             int
		at                   []string // path of minReadySeconds in the workload
	}{
		"CloneSet":                       {cloneSets, "{canary: {}}", "  minReadySeconds: 7\n", 7, []string{"spec"}},
		"StatefulSet":                    {statefulSets, "{canary: {}}", "  updateStrategy: {rollingUpdate: {minReadySeconds: 7}}\n", 7, rolling},
		"StatefulSet, by the document":   {statefulSets, "{canary: {}}\n  minReadySeconds: 8", "", 8, rolling},
		"GameServerSet":                  {gameServerSets, "{canary: {}}", seven, 7, ofGames},
		"GameServerSet, by the document": {gameServerSets, "{canary: {}}\n  minReadySeconds: 8", seven, 8, ofGames},
	} {
		t.Run(name, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(tc.kind, " ")
			r := mustRender(t, render.New(render.InProcess{}), ofKind(apiVersion, kind, tc.strategy, tc.more), app)
			group, _, _ := strings.Cut(apiVersion, "/")
			w := rollout.Workload{Kind: kind + "." + group, Namespace: "shop", Name: "web"}
			spec, staged := r.Spec(w)
			if !staged || spec.Partition == nil || spec.Partition.Kind != kind || r.Templates[w] == "" || r.Release() == "" {
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
			if kind == "CloneSet" {
				compare.CheckNamed(t, "warnings", []string{"CloneSet/shop/web: replicas are ignored, because " +
					"HorizontalPodAutoscaler/shop/web scales the workload; remove replicas from the manifest"}, r.Warnings)
			}
		})
	}
}

// TestCloneSetWithoutADocument checks that a CloneSet without a Rollout has a template hash, but no Spec.
func TestCloneSetWithoutADocument(t *testing.T) {
	files := ofKind("apps.kruise.io/v1alpha1", "CloneSet", "", "  updateStrategy: {partition: 2}\n")
	files["kustomization.yaml"] = "resources: [workload.yaml, hpa.yaml]\n"
	r := renderRepo(t, files)
	w, is := r.Workload(rollout.Ref{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"})
	if is || r.Templates[w] == "" || len(r.Specs) > 0 || len(r.Objects) != 2 || r.Release() != "" {
		t.Errorf("it is %+v of %v", r.Specs, r.Templates)
	}
}

// TestMaxUnavailableOfAnUpdateStrategy checks how many pods may be unavailable. Without maxUnavailable, the number is 20% for CloneSets,
// and zero for StatefulSets. The number is zero for kinds in the configuration, because gitrollout does not know their field.
func TestMaxUnavailableOfAnUpdateStrategy(t *testing.T) {
	games := rollout.Partitioned{APIVersion: "example.com/v1", Kind: "GameServerSet", Partition: "spec.updateStrategy.partition",
		MinReady: "spec.minReadySeconds"}
	app := demo
	app.Workloads = rollout.PartitionedText([]rollout.Partitioned{games})
	const sets, clones = "apps.kruise.io/v1beta1 StatefulSet", "apps.kruise.io/v1alpha1 CloneSet"
	const rolling = "{rollingUpdate: {maxUnavailable: 2}}"
	for name, tc := range map[string]struct{ kind, updateStrategy, want string }{
		"StatefulSet":              {"apps/v1 StatefulSet", rolling, "2"},
		"StatefulSet, default":     {"apps/v1 StatefulSet", "{}", "0"},
		"Kruise's, default":        {sets, "{}", "0"},
		"Kruise's":                 {sets, rolling, "2"},
		"CloneSet, default":        {clones, "{}", "20%"},
		"CloneSet":                 {clones, "{maxUnavailable: 30%}", "30%"},
		"CloneSet, with surplus":   {clones, "{maxUnavailable: 0, maxSurge: 1}", "0"},
		"CloneSet of v1beta1":      {"apps.kruise.io/v1beta1 CloneSet", rolling, "2"},
		"a field that may be else": {"example.com/v1 GameServerSet", "{maxUnavailable: no}", "0"},
	} {
		apiVersion, kind, _ := strings.Cut(tc.kind, " ")
		files := ofKind(apiVersion, kind, "{canary: {}}", "  updateStrategy: "+tc.updateStrategy+"\n")
		r := mustRender(t, render.New(render.InProcess{}), files, app)
		if len(r.Specs) != 1 || r.Specs[0].MaxUnavailable.String() != tc.want {
			t.Errorf("%s: %+v, want %s missing pods", name, r.Specs, tc.want)
		}
	}
}
