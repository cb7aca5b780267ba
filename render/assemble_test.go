package render_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// renderDocs renders the app demo with a single manifest that contains the given documents.
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
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: next}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
`
	webRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec: {rules: [{backendRefs: [{name: web, port: 80}, {name: next, port: 80}]}]}
`
	ownHead = `apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`
	argoHead = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: web
  labels: {team: x}
  annotations: {gitrollout.dev/scaling: inPlace, keep: me, kubectl.kubernetes.io/last-applied-configuration: "{}"}
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
	const own = "  replicas: 7\n  minReadySeconds: 5\n  progressDeadlineSeconds: 90\n" +
		"  strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}\n"
	usual := rollout.Spec{Name: "web", Workload: web, MaxSurge: quarter, MaxUnavailable: quarter, ProgressDeadlineSeconds: 600,
		Scaling: rollout.InPlace}
	for name, tt := range map[string]struct {
		docs string
		want func(s *rollout.Spec) // turns the default spec into the wanted spec
	}{
		"all defaults": {deploymentHead + "---\n" + ownHead + "  strategy: {canary: {}}\n",
			func(s *rollout.Spec) { s.Canary = &rollout.Canary{} }},
		"the Deployment's own settings": {deploymentHead + own + "---\n" + ownHead + "  strategy: {canary: {}}\n", func(s *rollout.Spec) {
			s.Canary, s.Replicas, s.MinReadySeconds, s.ProgressDeadlineSeconds = &rollout.Canary{}, new(7), 5, 90
			s.MaxSurge, s.MaxUnavailable = rollout.Amount{Value: 2}, rollout.Amount{}
		}},
		"the Rollout overrides": {deploymentHead + own + "---\n" + ownHead + "  replicas: 3\n  minReadySeconds: 6\n" +
			"  progressDeadlineSeconds: 91\n  progressDeadlineAbort: true\n  paused: true\n  rollbackWindow: {revisions: 2}\n" +
			"  strategy: {canary: {maxUnavailable: \"3\"}}\n", func(s *rollout.Spec) {
			s.Canary, s.Replicas, s.MinReadySeconds, s.ProgressDeadlineSeconds = &rollout.Canary{}, new(3), 6, 91
			s.MaxSurge, s.MaxUnavailable = rollout.Amount{Value: 2}, rollout.Amount{Value: 3, Percent: true}
			s.ProgressDeadlineAbort, s.Paused, s.RollbackWindow = true, true, new(2)
		}},
		"steps": {deploymentHead + serviceDocs + ownHead + `  strategy:
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
`, func(s *rollout.Spec) {
			s.Scaling = rollout.Surge
			s.Canary = &rollout.Canary{
				StableService: "web", CanaryService: "next", AbortScaleDownDelaySeconds: 30, ScaleDownDelaySeconds: 30,
				Steps: []rollout.Step{
					{Name: "one", SetCanaryScale: &rollout.CanaryScale{Replicas: new(1)}},
					{SetCanaryScale: &rollout.CanaryScale{Weight: new(30)}},
					{SetWeight: new(0)},
					{Pause: &rollout.Pause{Duration: new(10 * time.Second)}},
					{Pause: &rollout.Pause{Duration: new(90 * time.Minute)}},
					{SetCanaryScale: &rollout.CanaryScale{MatchTrafficWeight: true}},
					{SetWeight: new(100)},
					{Pause: &rollout.Pause{}},
				}}
		}},
		"surge without Services": {deploymentHead + "---\n" + ownHead +
			"  strategy: {canary: {scaling: surge, abortScaleDownDelaySeconds: 0, minPodsPerReplicaSet: 2}}\n",
			func(s *rollout.Spec) { s.Canary, s.Scaling = &rollout.Canary{MinPodsPerReplicaSet: 2}, rollout.Surge }},
		"dynamic stable scale": {deploymentHead + "---\n" + ownHead + "  strategy: {canary: {dynamicStableScale: true}}\n",
			func(s *rollout.Spec) { s.Canary = &rollout.Canary{DynamicStableScale: true} }},
		"metadata by role": {deploymentHead + "---\n" + ownHead + "  strategy: {canary: {canaryMetadata: {annotations: {Example.com/Note: a}}, " +
			"stableMetadata: {labels: {example.com/Role: b}}}}\n", func(s *rollout.Spec) {
			s.Canary, s.NewMetadata = &rollout.Canary{}, `{"annotations":{"Example.com/Note":"a"}}`
			s.StableMetadata = `{"labels":{"example.com/Role":"b"}}`
		}},
		"blue-green": {deploymentHead + serviceDocs + ownHead + "  strategy: {blueGreen: {activeService: web, previewService: next}}\n",
			func(s *rollout.Spec) {
				s.Scaling, s.BlueGreen = rollout.Surge, &rollout.BlueGreen{ActiveService: "web", PreviewService: "next",
					AutoPromotionEnabled: true, ScaleDownDelaySeconds: 30, AbortScaleDownDelaySeconds: 30}
			}},
		"blue-green, all set": {deploymentHead + serviceDocs + ownHead + "  strategy: {blueGreen: {activeService: web, previewReplicaCount: 1, " +
			"autoPromotionEnabled: true, autoPromotionSeconds: 20, scaleDownDelaySeconds: 5, abortScaleDownDelaySeconds: 0}}\n",
			func(s *rollout.Spec) {
				s.Scaling, s.BlueGreen = rollout.Surge, &rollout.BlueGreen{ActiveService: "web", PreviewReplicaCount: new(1),
					AutoPromotionEnabled: true, AutoPromotionSeconds: 20, ScaleDownDelaySeconds: 5}
			}},
		"argo, replicas left out": {argoHead + "  strategy: {canary: {}}\n", func(s *rollout.Spec) { s.Canary = &rollout.Canary{} }},
		"argo, surge by annotation": {strings.Replace(argoHead, "inPlace", "surge", 1) +
			"  replicas: 0\n  strategy: {canary: {maxSurge: \"50%\", maxUnavailable: 0}}\n", func(s *rollout.Spec) {
			s.Canary, s.Replicas, s.Scaling = &rollout.Canary{AbortScaleDownDelaySeconds: 30}, new(0), rollout.Surge
			s.MaxSurge, s.MaxUnavailable = rollout.Amount{Value: 50, Percent: true}, rollout.Amount{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := usual, renderDocs(t, tt.docs)
			tt.want(&want)
			compare.CheckNamed(t, "specs", []rollout.Spec{want}, got.Specs)
			compare.CheckNamed(t, "warnings", []string(nil), got.Warnings)
		})
	}
}

// TestDeployments checks the Deployment that a Rollout generates or changes.
func TestDeployments(t *testing.T) {
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	}
	selector := map[string]any{"matchLabels": map[string]any{"app": "web"}}
	rolling := func(surge, unavailable any) map[string]any {
		return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": surge, "maxUnavailable": unavailable}}
	}
	argoRef := strings.Replace(ownHead, "gitrollout.dev", "argoproj.io", 1)
	const canary = "  strategy: {canary: {}}\n"
	for name, tt := range map[string]struct {
		docs string
		want map[string]any // the spec without selector and template
	}{
		"a Rollout that sets nothing changes nothing": {deploymentHead + "  replicas: 2\n---\n" + ownHead + canary,
			map[string]any{"replicas": int64(2)}},
		"overridden": {deploymentHead + "---\n" + ownHead + "  replicas: 3\n  revisionHistoryLimit: 4\n  minReadySeconds: 5\n" +
			"  progressDeadlineSeconds: 6\n  strategy: {canary: {maxSurge: 1, maxUnavailable: \"3\"}}\n",
			map[string]any{"replicas": int64(3), "revisionHistoryLimit": int64(4), "minReadySeconds": int64(5),
				"progressDeadlineSeconds": int64(6), "strategy": rolling(int64(1), "3%")}},
		"inline, a plain Deployment of the same name": {argoHead + "  revisionHistoryLimit: 2\n" + canary,
			map[string]any{"revisionHistoryLimit": int64(2), "strategy": rolling("25%", "25%")}},
		"scaled to 0, as in Argo Rollouts' migration guide": {deploymentHead + "  replicas: 0\n---\n" + argoRef + "  replicas: 5\n" + canary,
			map[string]any{"replicas": int64(5)}},
		"argo, default over 0": {deploymentHead + "  replicas: 0\n---\n" + argoRef + canary, map[string]any{"replicas": int64(1)}},
		"own kind, scaled to 0: a user may want no pods": {deploymentHead + "  replicas: 0\n---\n" + ownHead + canary,
			map[string]any{"replicas": int64(0)}},
		"Recreate without steps: nothing has to run side by side": {deploymentHead + "  strategy: {type: Recreate}\n---\n" + ownHead + canary,
			map[string]any{"strategy": map[string]any{"type": "Recreate"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := renderDocs(t, tt.docs)
			if len(got.Objects) != 1 {
				t.Fatalf("objects: %v, want the Deployment only", refs(got.Objects))
			}
			tt.want["selector"], tt.want["template"] = selector, template
			compare.CheckNamed(t, "spec", tt.want, got.Objects[0].Map("spec"))
			h, err := rollout.HashTemplate(template)
			if err != nil || got.Templates[web] != h {
				t.Errorf("hash %s, want %s (%v)", got.Templates[web], h, err)
			}
		})
	}
	meta := renderDocs(t, argoHead+canary+"status: {phase: old}\n").Objects[0].Map("metadata")
	compare.CheckNamed(t, "metadata", map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"team": "x"},
		"annotations": map[string]any{"keep": "me"}}, meta)
}

// TestArgoCompanions checks objects that users have beside Argo Rollouts, such as autoscalers. They are converted, or cause a warning.
func TestArgoCompanions(t *testing.T) {
	const vpa = "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: v}\n" +
		"spec: {targetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}\n"
	got := renderDocs(t, argoHead+"  replicas: 4\n  strategy: {canary: {}}\n"+vpa)
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	for _, o := range got.Objects {
		if o.Kind() != "Deployment" {
			compare.CheckNamed(t, "the VPA's target", deployment, o.Map("spec", "targetRef"))
		} else if o.Map("spec")["replicas"] != int64(4) {
			t.Errorf("a VPA sets no replicas, and they are %v", o.Map("spec")["replicas"])
		}
	}
	ref := strings.Replace(ownHead, "gitrollout.dev/", "argoproj.io/", 1) + "  selector: {matchLabels: {app: web}}\n  strategy: {canary: {}}\n"
	ref = strings.Replace(ref, "{name: web}", "{name: web, annotations: {notifications.argoproj.io/subscribe.on-x.slack: c}}", 1)
	got = renderDocs(t, deploymentHead+"---\n"+ref)
	const want = "metadata.annotations notifications.argoproj.io/subscribe.on-x.slack sends no message: " +
		"list receivers in the configuration's notifications"
	if len(got.Specs) != 1 || len(got.Warnings) != 1 || !strings.HasSuffix(got.Warnings[0], want) {
		t.Errorf("%d specs, warnings %q", len(got.Specs), got.Warnings)
	}
}

func TestScalers(t *testing.T) {
	hpa := func(target string) string {
		return "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\n" +
			"spec: {scaleTargetRef: {" + target + "}, maxReplicas: 9}\n"
	}
	keda := func(target string) string {
		return "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: h}\nspec: {scaleTargetRef: {" + target + "}}\n"
	}
	const plain, argo = deploymentHead + "  replicas: 2\n", argoHead + "  strategy: {canary: {}}\n"
	const toPlain, toArgo = "apiVersion: apps/v1, kind: Deployment, name: web", "apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: "
	ref := "---\n" + strings.Replace(ownHead, "metadata: {name: web}", "metadata: {name: stages}", 1) + "  strategy: {canary: {}}\n"
	const ignored = "Deployment/shop/web: replicas are ignored, because HorizontalPodAutoscaler/shop/h " +
		"scales the workload; remove replicas from the manifest"
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	for name, tt := range map[string]struct {
		docs     string
		target   map[string]any // the scaler's target; nil if the target is no workload of the app
		warnings []string
	}{
		"none":             {plain, nil, nil},
		"plain Deployment": {plain + hpa(toPlain), deployment, []string{ignored}},
		"without replicas": {deploymentHead + hpa(toPlain), deployment, nil},
		"another workload": {plain + hpa("apiVersion: apps/v1, kind: StatefulSet, name: web"), nil, nil},
		"Argo Rollout":     {argo + hpa(toArgo+"web"), deployment, nil},
		"Rollout by reference": {plain + ref + hpa("apiVersion: gitrollout.dev/v1alpha1, kind: Rollout, name: stages"), deployment,
			[]string{ignored}},
		"KEDA's default kind": {plain + keda("name: web"), map[string]any{"name": "web"},
			[]string{strings.Replace(ignored, "HorizontalPodAutoscaler", "ScaledObject", 1)}},
		"KEDA, Argo Rollout": {argo + keda(toArgo+"web"), deployment, nil},
		"Rollout elsewhere": {plain + hpa(toArgo+"gone"), nil,
			[]string{"HorizontalPodAutoscaler/shop/h: its target is Rollout/shop/gone, which is not in this app"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, scaled := renderDocs(t, tt.docs), tt.target != nil
			for _, o := range got.Objects {
				if o.Kind() == "Deployment" && (o.Map("spec")["replicas"] == nil) != scaled {
					t.Errorf("replicas: %v, want them omitted: %v", o.Map("spec")["replicas"], scaled)
				}
				if target := o.Map("spec", "scaleTargetRef"); target != nil && scaled {
					compare.CheckNamed(t, "target", tt.target, target)
				}
			}
			for _, s := range got.Specs {
				if (s.Replicas == nil) != scaled {
					t.Errorf("Spec.Replicas is nil: %v, want %v", s.Replicas == nil, scaled)
				}
			}
			compare.CheckNamed(t, "warnings", tt.warnings, got.Warnings)
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		rollout string
		want    []string // without the prefix "Rollout/shop/web: spec."
	}{
		"ignored fields": {
			"  analysis: {successfulRunHistoryLimit: 1}\n" +
				"  strategy: {canary: {scaleDownDelayRevisionLimit: 1}}\n",
			[]string{
				"analysis is ignored: gitrollout creates no AnalysisRuns",
				"strategy.canary.scaleDownDelayRevisionLimit is ignored: a promotion leaves at most one old ReplicaSet with pods",
			},
		},
		"needs surge": {"  strategy: {canary: {scaleDownDelaySeconds: 3}}\n",
			[]string{"strategy.canary.scaleDownDelaySeconds is ignored: it needs scaling: surge, but pods are replaced in place"}},
		"the delay of an abort with dynamicStableScale": {
			"  strategy: {canary: {stableService: web, canaryService: next, trafficRouting: {gatewayAPI: {httpRoute: web}}, " +
				"dynamicStableScale: true, abortScaleDownDelaySeconds: 5}}\n---\n" + webRoute,
			[]string{"strategy.canary.abortScaleDownDelaySeconds is ignored: with dynamicStableScale, " +
				"an abort removes the new version's pods while it adds stable pods"},
		},
		"stable users on fewer and fewer pods": {"  strategy: {canary: {stableService: web, steps: [{setWeight: 80}]}}\n",
			[]string{"strategy.canary.stableService selects only stable pods, and each setWeight step leaves fewer, " +
				"because pods are replaced in place: leave stableService out, so that all pods get requests, or use scaling: surge"}},
		"weights that go down":        {"  strategy: {canary: {steps: [{setWeight: 50}, {setWeight: 20}]}}\n", nil},
		"a stable version that stays": {"  strategy: {canary: {scaling: surge, stableService: web, steps: [{setWeight: 80}]}}\n", nil},
		"auto promotion off": {"  strategy: {blueGreen: {activeService: web, autoPromotionEnabled: false, autoPromotionSeconds: 9}}\n",
			[]string{"strategy.blueGreen.autoPromotionSeconds is ignored: autoPromotionEnabled is false, so the release waits for a promotion"}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, warning := range tt.want {
				tt.want[i] = "Rollout/shop/web: spec." + warning
			}
			compare.Check(t, tt.want, renderDocs(t, deploymentHead+serviceDocs+ownHead+tt.rollout).Warnings)
		})
	}
}

// TestJobWithATTL checks that a Job's TTL is removed with a warning, because gitrollout would create the deleted Job and run it again.
func TestJobWithATTL(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: move}\n" +
		"spec: {ttlSecondsAfterFinished: 0, backoffLimit: 1, template: {}}\n---\n" +
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
	want := []string{"Job/shop/move: ttlSecondsAfterFinished is left out: the Job runs once, and stays while it is in Git"}
	compare.CheckNamed(t, "warnings", want, got.Warnings)
}

// TestAnnotationsOfControllers checks that render drops annotations of Kubernetes controllers, which an exported Deployment has.
func TestAnnotationsOfControllers(t *testing.T) {
	got := renderDocs(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations:\n"+
		"    deployment.kubernetes.io/revision: \"7\"\n    team: shop\nspec:\n  selector: {matchLabels: {app: web}}\n"+
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}\n")
	if is := got.Objects[0].Map("metadata", "annotations"); len(is) != 1 || is["team"] != "shop" {
		t.Errorf("annotations: %v", is)
	}
	want := []string{"Deployment/shop/web: annotation deployment.kubernetes.io/revision is left out: a controller of Kubernetes writes it"}
	compare.CheckNamed(t, "warnings", want, got.Warnings)
}

// TestRenamed checks that render adds an overlay's prefix and suffix to the names that a Rollout refers to, because kustomize does not.
func TestRenamed(t *testing.T) {
	const hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\n" +
		"spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: argo}}\n"
	argo := strings.Replace(argoHead, "name: web", "name: argo", 1)
	got := renderRepo(t, map[string]string{
		"kustomization.yaml":      "resources: [base]\nnamePrefix: eu-\nnameSuffix: -b\n",
		"base/kustomization.yaml": "resources: [all.yaml]\n",
		"base/all.yaml": deploymentHead + serviceDocs + ownHead + "  strategy: {blueGreen: {activeService: web, previewService: next}}\n---\n" +
			argo + "  strategy: {canary: {canaryService: own}}\n" + hpa + "---\n" +
			"{apiVersion: v1, kind: Service, metadata: {name: own}, spec: {selector: {app: web}, ports: [{port: 80}]}}\n",
	})
	if len(got.Specs) != 2 || len(got.Warnings) > 0 {
		t.Fatalf("%d specs, warnings %q; want 2 and none", len(got.Specs), got.Warnings)
	}
	canary, blueGreen := got.Specs[0], got.Specs[1]
	names := []string{canary.Workload.Name, canary.Canary.CanaryService, blueGreen.Workload.Name, blueGreen.BlueGreen.ActiveService,
		blueGreen.BlueGreen.PreviewService}
	compare.CheckNamed(t, "names", []string{"eu-argo-b", "eu-own-b", "eu-web-b", "eu-web-b", "eu-next-b"}, names)
	if canary.Replicas != nil {
		t.Errorf("replicas %d, want nil: the HPA scales it", *canary.Replicas)
	}
}

// TestGeneratedNames checks the warning about a generated name in a Rollout's template. Kustomize replaces such names only in Deployments.
func TestGeneratedNames(t *testing.T) {
	argo := strings.Replace(argoHead, `image: "web:1"`, `image: "web:1", `+
		`envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: own}}, {configMapRef: {name: plain}}]`, 1)
	got := renderRepo(t, map[string]string{
		"kustomization.yaml": "resources: [all.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n",
		"all.yaml":           argo + "  strategy: {canary: {}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n",
	})
	want := []string{"Rollout/shop/web: the template names ConfigMap settings, which kustomize has generated as settings-4h2mbtbbt6; " +
		"add `configurations` with a nameReference for Rollout"}
	compare.CheckNamed(t, "warnings", want, got.Warnings)
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
		kind, scope, _ := strings.Cut(crd, " ")
		docs.WriteString("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"metadata: {name: " + strings.ToLower(kind) + "s.example.com}\n" +
			"spec: {group: example.com, scope: " + scope + ", names: {kind: " + kind + "}}\n")
	}
	got := renderRepo(t, map[string]string{
		"kustomization.yaml": "resources: [all.yaml]\nsortOptions: {order: fifo}\n", "all.yaml": docs.String()})
	want := []string{
		"core/Namespace/-/shop",
		"apiextensions.k8s.io/CustomResourceDefinition/-/widgets.example.com",
		"apiextensions.k8s.io/CustomResourceDefinition/-/gadgets.example.com",
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
	compare.CheckNamed(t, "objects", want, refs(got.Objects))
}

// TestExamplesRender checks that every example app renders.
func TestExamplesRender(t *testing.T) {
	configs, err := filepath.Glob("../examples/*/.gitrollout/*/config.yaml")
	must(t, err)
	if len(configs) < 10 {
		t.Fatalf("found the examples %q: is their folder another?", configs)
	}
	for _, file := range configs {
		t.Run(strings.TrimPrefix(file, "../examples/"), func(t *testing.T) {
			example, name, _ := strings.Cut(file, "/.gitrollout/")
			files := readFiles(t, example)
			config, err := rollout.ParseConfig(file, []byte(files[".gitrollout/"+name]))
			must(t, err)
			apps, err := render.FindApps(newTree(files), config)
			if err != nil || len(apps) == 0 {
				t.Fatalf("%d apps, error %v", len(apps), err)
			}
			for _, app := range apps {
				compare.CheckNamed(t, app.Name+": warnings", []string(nil), mustRender(t, render.New(render.InProcess{}), files, app).Warnings)
			}
		})
	}
}
