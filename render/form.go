package render

import (
	"fmt"
	"reflect"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// The document reader, the JSON schemas and the reference pages use the tags below (rollout.Field). The names are from
// Argo Rollouts v1.10 (pkg/apis/rollouts/v1alpha1/types.go). Argo's other fields are refused. "own" marks fields that
// only gitrollout has.

// Form returns the type of a Rollout document.
func Form() reflect.Type { return reflect.TypeFor[documentForm]() }

// Routers is the value of the tag "names" at trafficForm's field Routers.
const Routers = "routers"

type documentForm struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   any       `json:"metadata"`
	Spec       *specForm `json:"spec" needs:"say what to release, and how"`
	Status     any       `json:"status"`
}

type specForm struct {
	rollout.Spec
	Replicas                *int            `json:"replicas"`
	MinReadySeconds         *int            `json:"minReadySeconds"`
	RevisionHistoryLimit    *int            `json:"revisionHistoryLimit"`
	ProgressDeadlineSeconds *int            `json:"progressDeadlineSeconds"`
	RollbackWindow          *rollbackWindow `json:"rollbackWindow"`
	WorkloadRef             *workloadRef    `json:"workloadRef"`
	Template                map[string]any  `json:"template" argo:"put it into the Deployment that spec.workloadRef names"`
	Selector                map[string]any  `json:"selector" argo:"put it into the Deployment that spec.workloadRef names"`
	Analysis                *historyForm    `json:"analysis" ignored:"gitrollout creates no AnalysisRuns"`
	Strategy                *strategyForm   `json:"strategy" needs:"give canary or blueGreen"`
}

type historyForm struct {
	Successful   *int `json:"successfulRunHistoryLimit"`
	Unsuccessful *int `json:"unsuccessfulRunHistoryLimit"`
}

type rollbackWindow struct {
	Revisions *int `json:"revisions"`
}

type workloadRef struct {
	APIVersion string `json:"apiVersion" needs:"use apps/v1"`
	Kind       string `json:"kind" needs:"name the kind of the workload, as its manifest has it"`
	Name       string `json:"name" needs:"name the workload"`
	_          any    `field:"scaleDown" ignored:"gitrollout updates the Deployment in stages, and does not scale it down"`
}

type strategyForm struct {
	Canary    *canaryForm    `json:"canary"`
	BlueGreen *blueGreenForm `json:"blueGreen"`
	_         any            `one:"canary blueGreen" none:"give one; for a canary without settings, write canary: {}"`
}

type canaryForm struct {
	rollout.Canary
	CanaryMetadata             podMetadata     `json:"canaryMetadata"`
	StableMetadata             podMetadata     `json:"stableMetadata"`
	Steps                      []stepForm      `json:"steps"`
	MaxSurge                   *rollout.Amount `json:"maxSurge"`
	MaxUnavailable             *rollout.Amount `json:"maxUnavailable"`
	MinPodsPerReplicaSet       *int            `json:"minPodsPerReplicaSet"`
	AbortScaleDownDelaySeconds *int            `json:"abortScaleDownDelaySeconds"`
	ScaleDownDelaySeconds      *int            `json:"scaleDownDelaySeconds"`
	Scaling                    rollout.Scaling `json:"scaling" own:"set the annotation gitrollout.dev/scaling" oneOf:"inPlace surge"`
	Traffic                    *trafficForm    `json:"trafficRouting"`
	Analysis                   *backgroundForm `json:"analysis"`
	Watch                      *watchForm      `json:"watch" own:""`
	_                          any             `field:"antiAffinity" notYet:"put the affinity into the pod template"`
	_                          any             `field:"scaleDownDelayRevisionLimit" ignored:"a promotion leaves at most one old ReplicaSet with pods"`
}

type blueGreenForm struct {
	rollout.BlueGreen
	PrePromotion    *analysisForm `json:"prePromotionAnalysis"`
	PostPromotion   *analysisForm `json:"postPromotionAnalysis"`
	Watch           *watchForm    `json:"watch" own:""`
	PreviewMetadata podMetadata   `json:"previewMetadata"`
	ActiveMetadata  podMetadata   `json:"activeMetadata"`
	_               any           `field:"antiAffinity" notYet:"put the affinity into the pod template"`
	_               any           `field:"maxUnavailable" ignored:"restarts use the maxUnavailable of the Deployment"`
	_               any           `field:"scaleDownDelayRevisionLimit" ignored:"a promotion leaves at most one old ReplicaSet with pods"`
}

type stepForm struct {
	rollout.Step
	Analysis    *analysisForm   `json:"analysis"`
	Experiment  *experimentForm `json:"experiment"`
	HeaderRoute *headerRoute    `json:"setHeaderRoute"`
	MirrorRoute *mirrorRoute    `json:"setMirrorRoute"`
	Match       []rollout.Match `json:"match" own:""`
	_           any             `field:"plugin" notYet:"leave it out, and use a pause step instead of the plugin"`
	_           any             `one:"setWeight pause setCanaryScale setHeaderRoute setMirrorRoute match analysis experiment" none:"give it one; for a pause without end, write pause: {}" many:"make each a separate step"`
}

type headerRoute struct {
	Name  string        `json:"name" needs:"name it"`
	Match []headerMatch `json:"match"`
}

type headerMatch struct {
	HeaderName  string               `json:"headerName" needs:"name the header" is:"header"`
	HeaderValue *rollout.StringMatch `json:"headerValue" needs:"give exact, prefix or regex"`
}

type mirrorRoute struct {
	Name       string        `json:"name" needs:"name it"`
	Match      []mirrorMatch `json:"match"`
	Percentage *int          `json:"percentage" default:"100" max:"100"`
}

type mirrorMatch struct {
	Method  *rollout.StringMatch           `json:"method"`
	Path    *rollout.StringMatch           `json:"path"`
	Headers map[string]rollout.StringMatch `json:"headers"`
}

type trafficForm struct {
	rollout.Traffic
	ManagedRoutes []managedRoute `json:"managedRoutes"`
	Plugins       *pluginsForm   `json:"plugins"`
	_             any            `field:"appMesh" refused:"AWS has ended App Mesh; use gatewayAPI, istio or alb"`
	Routers       map[string]any `json:"*" names:"routers"`
}

type managedRoute struct {
	Name string `json:"name" needs:"name it" is:"route"`
}

type pluginsForm struct {
	GatewayAPI any `json:"argoproj-labs/gatewayAPI" names:"gatewayAPI"`
	_          any `unknown:"use trafficRouting.object for a router that gitrollout does not know"`
}

type analysisForm struct {
	Templates []analysis.TemplateRef `json:"templates" needs:"name at least one: - templateName: NAME"`
	Args      []argument             `json:"args"`
	analysis.Rules
	_ any `field:"analysisRunMetadata" ignored:"gitrollout creates no AnalysisRuns"`
}

type backgroundForm struct {
	analysisForm
	StartingStep int `json:"startingStep"`
}

type watchForm struct {
	analysisForm
	For time.Duration `json:"for" needs:"say how long to watch, as in 24h" min:"1" fix:"to watch nothing, leave watch out"`
}

type argument struct {
	Name      string  `json:"name" needs:"name the argument"`
	Value     *string `json:"value"`
	ValueFrom *struct {
		PodTemplateHashValue string `json:"podTemplateHashValue" oneOf:"Stable Latest"`
		FieldRef             *struct {
			FieldPath string `json:"fieldPath"`
		} `json:"fieldRef"`
		_ any `some:"give podTemplateHashValue or fieldRef"`
	} `json:"valueFrom"`
}

type experimentForm struct {
	rollout.Experiment
	Templates []templateForm    `json:"templates" needs:"name at least one: - {name: baseline, specRef: stable}"`
	Analyses  []experimentRuns  `json:"analyses"`
	DryRun    []analysis.DryRun `json:"dryRun"`
	_         any               `field:"scaleDownDelaySeconds" ignored:"the pods are removed when the step ends"`
	_         any               `field:"analysisRunMetadata" ignored:"gitrollout creates no AnalysisRuns"`
}

type templateForm struct {
	rollout.ExperimentTemplate
	Metadata podMetadata `json:"metadata"`
	Selector *struct {
		MatchLabels      map[string]any `json:"matchLabels"`
		MatchExpressions []any          `json:"matchExpressions"`
	} `json:"selector"`
	Service *struct {
		Name string `json:"name" is:"service"`
	} `json:"service"`
}

type experimentRuns struct {
	Name         string                 `json:"name" needs:"name the analysis" is:"part"`
	TemplateName string                 `json:"templateName"`
	ClusterScope bool                   `json:"clusterScope"`
	Templates    []analysis.TemplateRef `json:"templates" own:""`
	Args         []argument             `json:"args"`
	Required     bool                   `json:"requiredForCompletion"`
	_            any                    `field:"analysisRunMetadata" ignored:"gitrollout creates no AnalysisRuns"`
	_            any                    `one:"templateName templates" none:"name an AnalysisTemplate of this app in templateName"`
}

type deploymentForm struct {
	Paused                  bool           `json:"paused"`
	Replicas                *int           `json:"replicas"`
	MinReadySeconds         *int           `json:"minReadySeconds"`
	ProgressDeadlineSeconds *int           `json:"progressDeadlineSeconds"`
	RevisionHistoryLimit    *int           `json:"revisionHistoryLimit"`
	Strategy                deployStrategy `json:"strategy"`
	Rest                    map[string]any `json:"*"`
}

type deployStrategy struct {
	Type          string `json:"type"`
	RollingUpdate struct {
		MaxSurge       *podAmount     `json:"maxSurge"`
		MaxUnavailable *podAmount     `json:"maxUnavailable"`
		Rest           map[string]any `json:"*"`
	} `json:"rollingUpdate"`
	Rest map[string]any `json:"*"`
}

// podAmount is a number or a percentage. As in Kubernetes, a number in quotes is an error.
type podAmount struct{ rollout.Amount }

func (a *podAmount) ReadValue(raw any) error {
	if err := a.Amount.ReadValue(raw); err != nil {
		return err
	}
	if text, isText := raw.(string); isText && text[len(text)-1] != '%' {
		msg := fmt.Sprintf("%q is a string, not a number", text)
		return &rollout.InvalidError{Msg: msg, Fix: "remove the quotes, or add %"}
	}
	return nil
}
