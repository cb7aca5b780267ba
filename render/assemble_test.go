package render

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func ptr[T any](v T) *T { return &v }

// renderRepo renders a repository whose root is the app, in namespace shop.
func renderRepo(t *testing.T, files map[string]string) *rollout.Render {
	t.Helper()
	got, err := New(InProcess{}).Render(newTree(files), rollout.App{Name: "demo", Namespace: "shop"}, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// renderDocs renders the documents of one file.
func renderDocs(t *testing.T, docs string) *rollout.Render {
	t.Helper()
	return renderRepo(t, map[string]string{"kustomization.yaml": "resources: [all.yaml]\n", "all.yaml": docs})
}

const (
	deploymentHead = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`
	serviceDocs = `---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: next}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
`
	ownHead = `apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`
	argoHead = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, labels: {team: x}, annotations: {gitrollout.dev/scaling: %s, keep: me, kubectl.kubernetes.io/last-applied-configuration: "{}"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`
)

var (
	web     = rollout.Workload{Namespace: "shop", Name: "web"}
	quarter = rollout.Amount{Value: 25, Percent: true}
)

func TestSpecs(t *testing.T) {
	argo := strings.ReplaceAll(argoHead, "%s", "inPlace")
	tests := map[string]struct {
		docs string
		want rollout.Spec
	}{
		"all defaults": {
			deploymentHead + "---\n" + ownHead + "  strategy: {canary: {}}\n",
			rollout.Spec{Canary: &rollout.Canary{}, MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace},
		},
		"the Deployment's own settings": {
			deploymentHead + "  replicas: 7\n  minReadySeconds: 5\n  progressDeadlineSeconds: 90\n  strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}\n---\n" + ownHead + "  strategy: {canary: {}}\n",
			rollout.Spec{Canary: &rollout.Canary{}, Replicas: ptr(7), MinReadySeconds: 5, MaxSurge: rollout.Amount{Value: 2}, ProgressDeadlineSeconds: 90, Scaling: rollout.InPlace},
		},
		"the Rollout overrides": {
			deploymentHead + "  replicas: 7\n  minReadySeconds: 5\n  progressDeadlineSeconds: 90\n  strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}\n---\n" + ownHead +
				"  replicas: 3\n  minReadySeconds: 6\n  progressDeadlineSeconds: 91\n  progressDeadlineAbort: true\n  paused: true\n  rollbackWindow: {revisions: 2}\n  strategy: {canary: {maxUnavailable: \"3\"}}\n",
			rollout.Spec{Canary: &rollout.Canary{}, Replicas: ptr(3), MinReadySeconds: 6, MaxSurge: rollout.Amount{Value: 2}, MaxUnavailable: rollout.Amount{Value: 3, Percent: true},
				ProgressDeadlineSeconds: 91, ProgressDeadlineAbort: true, Paused: true, RollbackWindow: ptr(2), Scaling: rollout.InPlace},
		},
		"steps": {
			deploymentHead + serviceDocs + ownHead + `  strategy:
    canary:
      scaling: surge
      stableService: web
      canaryService: next
      steps:
      - {name: one, setCanaryScale: {replicas: 1}}
      - setCanaryScale: {weight: 30}
      - setWeight: 0
      - pause: {duration: "10"}
      - pause: {duration: 1h30m}
      - setCanaryScale: {matchTrafficWeight: true}
      - setWeight: 100
      - pause: {}
`,
			rollout.Spec{MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge, Canary: &rollout.Canary{
				StableService: "web", CanaryService: "next", AbortScaleDownDelaySeconds: 30, ScaleDownDelaySeconds: 30,
				Steps: []rollout.Step{
					{Name: "one", SetCanaryScale: &rollout.CanaryScale{Replicas: ptr(1)}},
					{SetCanaryScale: &rollout.CanaryScale{Weight: ptr(30)}},
					{SetWeight: ptr(0)},
					{Pause: &rollout.Pause{Duration: ptr(10 * time.Second)}},
					{Pause: &rollout.Pause{Duration: ptr(90 * time.Minute)}},
					{SetCanaryScale: &rollout.CanaryScale{MatchTrafficWeight: true}},
					{SetWeight: ptr(100)},
					{Pause: &rollout.Pause{}},
				}}},
		},
		"surge without Services": {
			deploymentHead + "---\n" + ownHead + "  strategy: {canary: {scaling: surge, abortScaleDownDelaySeconds: 0, minPodsPerReplicaSet: 2}}\n",
			rollout.Spec{Canary: &rollout.Canary{MinPodsPerReplicaSet: 2}, MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge},
		},
		"dynamic stable scale": {
			deploymentHead + "---\n" + ownHead + "  strategy: {canary: {dynamicStableScale: true}}\n",
			rollout.Spec{Canary: &rollout.Canary{DynamicStableScale: true}, MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace},
		},
		"blue-green": {
			deploymentHead + serviceDocs + ownHead + "  strategy: {blueGreen: {activeService: web, previewService: next}}\n",
			rollout.Spec{MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{
				ActiveService: "web", PreviewService: "next", AutoPromotionEnabled: true, ScaleDownDelaySeconds: 30, AbortScaleDownDelaySeconds: 30}},
		},
		"blue-green, all set": {
			deploymentHead + serviceDocs + ownHead + "  strategy: {blueGreen: {activeService: web, previewReplicaCount: 1, autoPromotionEnabled: true, autoPromotionSeconds: 20, scaleDownDelaySeconds: 5, abortScaleDownDelaySeconds: 0}}\n",
			rollout.Spec{MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{
				ActiveService: "web", PreviewReplicaCount: ptr(1), AutoPromotionEnabled: true, AutoPromotionSeconds: 20, ScaleDownDelaySeconds: 5}},
		},
		"argo, replicas left out": {
			argo + "  strategy: {canary: {}}\n",
			rollout.Spec{Canary: &rollout.Canary{}, MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600, Scaling: rollout.InPlace},
		},
		"argo, surge by annotation": {
			strings.ReplaceAll(argoHead, "%s", "surge") + "  replicas: 0\n  strategy: {canary: {maxSurge: \"50%\", maxUnavailable: 0}}\n",
			rollout.Spec{Canary: &rollout.Canary{AbortScaleDownDelaySeconds: 30}, Replicas: ptr(0), MaxSurge: rollout.Amount{Value: 50, Percent: true}, ProgressDeadlineSeconds: 600, Scaling: rollout.Surge},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := renderDocs(t, tt.docs)
			tt.want.Workload, tt.want.Name = web, "web"
			if diff := compare.Diff([]rollout.Spec{tt.want}, got.Specs); diff != "" {
				t.Errorf("specs (-want +got):\n%s", diff)
			}
			if len(got.Warnings) > 0 {
				t.Errorf("warnings: %q", got.Warnings)
			}
		})
	}
}

// TestDeployments checks the rendered Deployment.
func TestDeployments(t *testing.T) {
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	}
	selector := map[string]any{"matchLabels": map[string]any{"app": "web"}}
	rolling := func(surge, unavailable any) map[string]any {
		return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": surge, "maxUnavailable": unavailable}}
	}
	argo := strings.ReplaceAll(argoHead, "%s", "inPlace")
	argoRef := strings.Replace(ownHead, "gitrollout.dev", "argoproj.io", 1)
	tests := map[string]struct {
		reason string
		docs   string
		want   map[string]any // spec, without selector and template
	}{
		"untouched":              {"a Rollout that sets nothing changes nothing", deploymentHead + "  replicas: 2\n---\n" + ownHead + "  strategy: {canary: {}}\n", map[string]any{"replicas": int64(2)}},
		"overridden":             {"", deploymentHead + "---\n" + ownHead + "  replicas: 3\n  revisionHistoryLimit: 4\n  minReadySeconds: 5\n  progressDeadlineSeconds: 6\n  strategy: {canary: {maxSurge: 1, maxUnavailable: \"3\"}}\n", map[string]any{"replicas": int64(3), "revisionHistoryLimit": int64(4), "minReadySeconds": int64(5), "progressDeadlineSeconds": int64(6), "strategy": rolling(int64(1), "3%")}},
		"inline":                 {"a plain Deployment of the same name", argo + "  revisionHistoryLimit: 2\n  strategy: {canary: {}}\n", map[string]any{"revisionHistoryLimit": int64(2), "strategy": rolling("25%", "25%")}},
		"argo, scaled to 0":      {"Argo Rollouts' migration guide has it so", deploymentHead + "  replicas: 0\n---\n" + argoRef + "  replicas: 5\n  strategy: {canary: {}}\n", map[string]any{"replicas": int64(5)}},
		"argo, default over 0":   {"", deploymentHead + "  replicas: 0\n---\n" + argoRef + "  strategy: {canary: {}}\n", map[string]any{"replicas": int64(1)}},
		"own kind, scaled to 0":  {"a user may want no pods", deploymentHead + "  replicas: 0\n---\n" + ownHead + "  strategy: {canary: {}}\n", map[string]any{"replicas": int64(0)}},
		"Recreate without steps": {"nothing has to run side by side", deploymentHead + "  strategy: {type: Recreate}\n---\n" + ownHead + "  strategy: {canary: {}}\n", map[string]any{"strategy": map[string]any{"type": "Recreate"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := renderDocs(t, tt.docs)
			if len(got.Objects) != 1 {
				t.Fatalf("objects: %v, want the Deployment only", refs(got.Objects))
			}
			tt.want["selector"], tt.want["template"] = selector, template
			if diff := compare.Diff(tt.want, got.Objects[0].Map("spec")); diff != "" {
				t.Errorf("%s: spec (-want +got):\n%s", tt.reason, diff)
			}
			h, err := rollout.HashTemplate(template)
			if err != nil || got.Templates[web] != h {
				t.Errorf("hash %s, want %s (%v)", got.Templates[web], h, err)
			}
		})
	}
	meta := renderDocs(t, argo+"  strategy: {canary: {}}\nstatus: {phase: old}\n").Objects[0].Map("metadata")
	if diff := compare.Diff(map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"team": "x"}, "annotations": map[string]any{"keep": "me"}}, meta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// TestArgoCompanions reads objects that users have beside Rollouts of Argo Rollouts, or warns of them.
func TestArgoCompanions(t *testing.T) {
	const vpa = "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: v}\n" +
		"spec: {targetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}\n"
	got := renderDocs(t, strings.ReplaceAll(argoHead, "%s", "inPlace")+"  replicas: 4\n  strategy: {canary: {}}\n"+vpa)
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	for _, o := range got.Objects {
		if target := o.Map("spec", "targetRef"); o.Kind() != "Deployment" && compare.Diff(deployment, target) != "" {
			t.Errorf("the VPA's target is %v", target)
		}
		if o.Kind() == "Deployment" && o.Map("spec")["replicas"] != int64(4) {
			t.Errorf("a VPA sets no replicas, and they are %v", o.Map("spec")["replicas"])
		}
	}
	ref := strings.Replace(ownHead, "gitrollout.dev/", "argoproj.io/", 1) + "  selector: {matchLabels: {app: web}}\n  strategy: {canary: {}}\n"
	ref = strings.Replace(ref, "{name: web}", "{name: web, annotations: {notifications.argoproj.io/subscribe.on-x.slack: c}}", 1)
	got = renderDocs(t, deploymentHead+"---\n"+ref)
	const want = "metadata.annotations notifications.argoproj.io/subscribe.on-x.slack sends no message: list receivers in the configuration's notifications"
	if len(got.Specs) != 1 || len(got.Warnings) != 1 || !strings.HasSuffix(got.Warnings[0], want) {
		t.Errorf("%d specs, warnings %q", len(got.Specs), got.Warnings)
	}
}

func TestScalers(t *testing.T) {
	hpa := func(target string) string {
		return "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {scaleTargetRef: {" + target + "}, maxReplicas: 9}\n"
	}
	keda := func(target string) string {
		return "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: h}\nspec: {scaleTargetRef: {" + target + "}}\n"
	}
	argo := strings.ReplaceAll(argoHead, "%s", "inPlace") + "  strategy: {canary: {}}\n"
	ref := "---\n" + strings.Replace(ownHead, "metadata: {name: web}", "metadata: {name: stages}", 1) + "  strategy: {canary: {}}\n"
	const ignored = "Deployment/shop/web: replicas are ignored, HorizontalPodAutoscaler/shop/h scales it; leave them out of the manifest"
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	tests := map[string]struct {
		docs     string
		scaled   bool
		target   map[string]any
		warnings []string
	}{
		"none":                 {deploymentHead + "  replicas: 2\n", false, nil, nil},
		"plain Deployment":     {deploymentHead + "  replicas: 2\n" + hpa("apiVersion: apps/v1, kind: Deployment, name: web"), true, deployment, []string{ignored}},
		"without replicas":     {deploymentHead + hpa("apiVersion: apps/v1, kind: Deployment, name: web"), true, deployment, nil},
		"another workload":     {deploymentHead + "  replicas: 2\n" + hpa("apiVersion: apps/v1, kind: StatefulSet, name: web"), false, nil, nil},
		"Argo Rollout":         {argo + hpa("apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web"), true, deployment, nil},
		"Rollout by reference": {deploymentHead + "  replicas: 2\n" + ref + hpa("apiVersion: gitrollout.dev/v1alpha1, kind: Rollout, name: stages"), true, deployment, []string{ignored}},
		"KEDA's default kind":  {deploymentHead + "  replicas: 2\n" + keda("name: web"), true, map[string]any{"name": "web"}, []string{strings.Replace(ignored, "HorizontalPodAutoscaler", "ScaledObject", 1)}},
		"KEDA, Argo Rollout":   {argo + keda("apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web"), true, deployment, nil},
		"Rollout elsewhere":    {deploymentHead + "  replicas: 2\n" + hpa("apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: gone"), false, nil, []string{"HorizontalPodAutoscaler/shop/h: its target is Rollout/shop/gone, which is not in this app"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := renderDocs(t, tt.docs)
			for _, o := range got.Objects {
				if o.Kind() == "Deployment" && (o.Map("spec")["replicas"] == nil) != tt.scaled {
					t.Errorf("replicas: %v, want them omitted: %v", o.Map("spec")["replicas"], tt.scaled)
				}
				if target := o.Map("spec", "scaleTargetRef"); target != nil && tt.scaled {
					if diff := compare.Diff(tt.target, target); diff != "" {
						t.Errorf("target (-want +got):\n%s", diff)
					}
				}
			}
			for _, s := range got.Specs {
				if (s.Replicas == nil) != tt.scaled {
					t.Errorf("Spec.Replicas is nil: %v, want %v", s.Replicas == nil, tt.scaled)
				}
			}
			if diff := compare.Diff(tt.warnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tests := map[string]struct {
		rollout string
		want    []string
	}{
		"ignored fields": {
			"  analysis: {successfulRunHistoryLimit: 1}\n  restartAt: \"2026-01-01T00:00:00Z\"\n  strategy: {canary: {scaleDownDelayRevisionLimit: 1}}\n",
			[]string{
				"Rollout/shop/web: spec.analysis is ignored: there are no AnalysisRuns whose number could be limited",
				"Rollout/shop/web: spec.restartAt is ignored: to restart pods, change an annotation of the pod template, which is a release",
				"Rollout/shop/web: spec.strategy.canary.scaleDownDelayRevisionLimit is ignored: a promotion leaves one old ReplicaSet with pods at most",
			},
		},
		"needs surge": {
			"  strategy: {canary: {scaleDownDelaySeconds: 3}}\n",
			[]string{"Rollout/shop/web: spec.strategy.canary.scaleDownDelaySeconds is ignored: pods are replaced in place, it needs scaling: surge"},
		},
		"the delay of an abort with dynamicStableScale": {
			"  strategy: {canary: {stableService: web, canaryService: next, trafficRouting: {gatewayAPI: {httpRoute: web}}, dynamicStableScale: true, abortScaleDownDelaySeconds: 5}}\n" +
				"---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}\nspec: {rules: [{backendRefs: [{name: web, port: 80}, {name: next, port: 80}]}]}\n",
			[]string{"Rollout/shop/web: spec.strategy.canary.abortScaleDownDelaySeconds is ignored: with dynamicStableScale pods of the new version go as stable pods come back"},
		},
		"stable users on fewer and fewer pods": {
			"  strategy: {canary: {stableService: web, steps: [{setWeight: 80}]}}\n",
			[]string{"Rollout/shop/web: spec.strategy.canary.stableService keeps all its users on the stable pods, which become fewer " +
				"with each weight as pods are replaced in place: leave it out, so that they are shared among all pods, or use scaling: surge"},
		},
		"weights that go down":        {"  strategy: {canary: {steps: [{setWeight: 50}, {setWeight: 20}]}}\n", nil},
		"a stable version that stays": {"  strategy: {canary: {scaling: surge, stableService: web, steps: [{setWeight: 80}]}}\n", nil},
		"auto promotion off": {
			"  strategy: {blueGreen: {activeService: web, autoPromotionEnabled: false, autoPromotionSeconds: 9}}\n",
			[]string{"Rollout/shop/web: spec.strategy.blueGreen.autoPromotionSeconds is ignored: autoPromotionEnabled is false, so a promotion is waited for"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := renderDocs(t, deploymentHead+serviceDocs+ownHead+tt.rollout)
			if diff := compare.Diff(tt.want, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJobWithATTL warns of a Job with a TTL: the cluster would delete it, and it would be created and run again.
func TestJobWithATTL(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: move}\nspec: {ttlSecondsAfterFinished: 0, backoffLimit: 1, template: {}}\n---\n" +
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {ttlSecondsAfterFinished: 60}}}\n"
	got := renderDocs(t, job)
	for _, o := range got.Objects {
		spec := o.Map("spec")
		switch _, has := spec["ttlSecondsAfterFinished"]; {
		case o.Kind() == "Job" && (has || spec["backoffLimit"] == nil):
			t.Errorf("the Job is %v", spec)
		case o.Kind() == "CronJob" && o.Map("spec", "jobTemplate", "spec")["ttlSecondsAfterFinished"] == nil:
			t.Errorf("the Jobs of a CronJob are the CronJob's: %v", spec)
		}
	}
	want := []string{"Job/shop/move: ttlSecondsAfterFinished is left out: the Job runs once, and goes when it leaves Git"}
	if diff := compare.Diff(want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestAnnotationsOfControllers leaves out annotations that Kubernetes' controllers write, as in an exported Deployment.
func TestAnnotationsOfControllers(t *testing.T) {
	got := renderDocs(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations:\n"+
		"    deployment.kubernetes.io/revision: \"7\"\n    team: shop\nspec:\n  selector: {matchLabels: {app: web}}\n"+
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}\n")
	if is := got.Objects[0].Map("metadata", "annotations"); len(is) != 1 || is["team"] != "shop" {
		t.Errorf("annotations: %v", is)
	}
	want := []string{"Deployment/shop/web: annotation deployment.kubernetes.io/revision is left out: a controller of Kubernetes writes it"}
	if diff := compare.Diff(want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestRenamed checks references in Rollouts, which kustomize does not rename: an overlay's prefix would break all of
// them.
func TestRenamed(t *testing.T) {
	argo := strings.ReplaceAll(strings.Replace(argoHead, "name: web", "name: argo", 1), "%s", "inPlace")
	got := renderRepo(t, map[string]string{
		"kustomization.yaml":      "resources: [base]\nnamePrefix: eu-\nnameSuffix: -b\n",
		"base/kustomization.yaml": "resources: [all.yaml]\n",
		"base/all.yaml": deploymentHead + serviceDocs + ownHead + "  strategy: {blueGreen: {activeService: web, previewService: next}}\n---\n" +
			argo + "  strategy: {canary: {canaryService: next}}\n" +
			"---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: argo}}\n",
	})
	if len(got.Specs) != 2 || len(got.Warnings) > 0 {
		t.Fatalf("%d specs, warnings %q; want 2 and none", len(got.Specs), got.Warnings)
	}
	canary, blueGreen := got.Specs[0], got.Specs[1]
	names := []string{canary.Workload.Name, canary.Canary.CanaryService, blueGreen.Workload.Name, blueGreen.BlueGreen.ActiveService, blueGreen.BlueGreen.PreviewService}
	if diff := compare.Diff([]string{"eu-argo-b", "eu-next-b", "eu-web-b", "eu-web-b", "eu-next-b"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if canary.Replicas != nil {
		t.Errorf("replicas %d, want nil: the HPA scales it", *canary.Replicas)
	}
}

// TestGeneratedNames checks references to generated names, which kustomize replaces only in Deployments.
func TestGeneratedNames(t *testing.T) {
	argo := strings.ReplaceAll(argoHead, "%s", "inPlace")
	argo = strings.Replace(argo, `image: "web:1"`, `image: "web:1", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: own}}, {configMapRef: {name: plain}}]`, 1)
	got := renderRepo(t, map[string]string{
		"kustomization.yaml": "resources: [all.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n",
		"all.yaml":           argo + "  strategy: {canary: {}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n",
	})
	want := []string{"Rollout/shop/web: the template names ConfigMap settings, which kustomize has generated as settings-4h2mbtbbt6; add `configurations` with a nameReference for Rollout"}
	if diff := compare.Diff(want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestNamespacesAndOrder(t *testing.T) {
	var docs strings.Builder
	for _, head := range []string{
		"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration hook",
		"example.com/v1 Widget w", "example.com/v1 Gadget g", "example.com/v1 Unknown u", "cert-manager.io/v1 ClusterIssuer i",
		"autoscaling/v2 HorizontalPodAutoscaler h", "policy/v1 PodDisruptionBudget p",
		"apps/v1 StatefulSet s", "batch/v1 Job j",
		"gateway.networking.k8s.io/v1 HTTPRoute r", "networking.k8s.io/v1 Ingress in",
		"v1 Service z", "v1 Service a", "v1 PersistentVolumeClaim c", "v1 Secret se", "v1 ConfigMap cm",
		"rbac.authorization.k8s.io/v1 RoleBinding rb", "rbac.authorization.k8s.io/v1 ClusterRole cr", "v1 ServiceAccount sa",
		"storage.k8s.io/v1 StorageClass sc", "v1 Namespace shop",
	} {
		f := strings.Fields(head)
		docs.WriteString("---\napiVersion: " + f[0] + "\nkind: " + f[1] + "\nmetadata: {name: " + f[2] + "}\n")
	}
	docs.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: given, namespace: other}\n")
	for _, crd := range []string{"Widget Cluster", "Gadget Namespaced"} {
		f := strings.Fields(crd)
		docs.WriteString("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + strings.ToLower(f[0]) + "s.example.com}\nspec: {group: example.com, scope: " + f[1] + ", names: {kind: " + f[0] + "}}\n")
	}
	got := renderRepo(t, map[string]string{"kustomization.yaml": "resources: [all.yaml]\nsortOptions: {order: fifo}\n", "all.yaml": docs.String()})
	want := []string{
		"core/Namespace/-/shop",
		"apiextensions.k8s.io/CustomResourceDefinition/-/widgets.example.com", "apiextensions.k8s.io/CustomResourceDefinition/-/gadgets.example.com",
		"storage.k8s.io/StorageClass/-/sc", "core/ServiceAccount/shop/sa",
		"rbac.authorization.k8s.io/ClusterRole/-/cr", "rbac.authorization.k8s.io/RoleBinding/shop/rb",
		"core/ConfigMap/shop/cm", "core/ConfigMap/other/given", "core/Secret/shop/se", "core/PersistentVolumeClaim/shop/c",
		"core/Service/shop/z", "core/Service/shop/a",
		"gateway.networking.k8s.io/HTTPRoute/shop/r", "networking.k8s.io/Ingress/shop/in",
		"apps/StatefulSet/shop/s", "batch/Job/shop/j",
		"autoscaling/HorizontalPodAutoscaler/shop/h", "policy/PodDisruptionBudget/shop/p",
		"example.com/Widget/-/w", "example.com/Gadget/shop/g", "example.com/Unknown/shop/u", "cert-manager.io/ClusterIssuer/-/i",
		"admissionregistration.k8s.io/ValidatingWebhookConfiguration/-/hook",
	}
	if diff := compare.Diff(want, refs(got.Objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestExamplesRender renders every example app.
func TestExamplesRender(t *testing.T) {
	files := readFiles(t, "../examples")
	byExample := map[string]map[string]string{}
	for name, content := range files {
		if example, rest, ok := strings.Cut(name, "/"); ok {
			if byExample[example] == nil {
				byExample[example] = map[string]string{}
			}
			byExample[example][rest] = content
		}
	}
	for example, repo := range byExample {
		for name, content := range repo {
			if !strings.HasPrefix(name, ".gitrollout/") || !strings.HasSuffix(name, "/config.yaml") {
				continue
			}
			t.Run(example+"/"+name, func(t *testing.T) {
				tree := newTree(repo)
				cfg, err := rollout.ParseConfig(name, []byte(content))
				if err != nil {
					t.Fatal(err)
				}
				apps, err := FindApps(tree, cfg)
				if err != nil || len(apps) == 0 {
					t.Fatalf("%d apps, error %v", len(apps), err)
				}
				for _, app := range apps {
					got, err := New(InProcess{}).Render(tree, app, rollout.Commit{})
					if err != nil {
						t.Error(err)
					} else if len(got.Warnings) > 0 {
						t.Errorf("%s: warnings %q", app.Name, got.Warnings)
					}
				}
			})
		}
	}
}
