package render

import "maps"

// What is known of each field of a Rollout document. The names are those of
// Argo Rollouts v1.10 (pkg/apis/rollouts/v1alpha1/types.go); what it has and
// this table does not is unknown to both.

const (
	noMetadata = "leave it out, or put the labels into the pod template"
)

// commonFields are the fields of spec in both kinds of Rollout.
var commonFields = map[string]fieldRule{
	"replicas": {}, "minReadySeconds": {}, "rollbackWindow": {}, "revisionHistoryLimit": {}, "paused": {},
	"progressDeadlineSeconds": {}, "progressDeadlineAbort": {}, "workloadRef": {}, "strategy": {},
}

// specFields returns the fields of spec.
func specFields(argo bool) map[string]fieldRule {
	rules := make(map[string]fieldRule, len(commonFields)+4)
	for name, rule := range commonFields {
		rules[name] = rule
	}
	if argo {
		rules["template"], rules["selector"] = fieldRule{}, fieldRule{}
	} else {
		const note = "put it into the Deployment that spec.workloadRef names"
		rules["template"], rules["selector"] = fieldRule{refused, note}, fieldRule{refused, note}
	}
	rules["analysis"] = fieldRule{ignored, "there are no AnalysisRuns whose number could be limited"}
	rules["restartAt"] = fieldRule{ignored, "to restart pods, change an annotation of the pod template, which is a release"}
	return rules
}

var analysisHistoryFields = map[string]fieldRule{"successfulRunHistoryLimit": {}, "unsuccessfulRunHistoryLimit": {}}

var workloadRefFields = map[string]fieldRule{
	"apiVersion": {}, "kind": {}, "name": {},
	"scaleDown": {ignored, "the Deployment is not scaled down, it is what is moved in stages"},
}

var rollbackWindowFields = map[string]fieldRule{"revisions": {}}

var strategyFields = map[string]fieldRule{"canary": {}, "blueGreen": {}}

var canaryFields = map[string]fieldRule{
	"steps": {}, "stableService": {}, "canaryService": {}, "maxSurge": {}, "maxUnavailable": {}, "dynamicStableScale": {},
	"minPodsPerReplicaSet": {}, "abortScaleDownDelaySeconds": {}, "scaleDownDelaySeconds": {}, "scaling": {},
	"trafficRouting": {}, "pingPong": {},
	"analysis":                    {},
	"antiAffinity":                {notYet, "put the affinity into the pod template"},
	"canaryMetadata":              {notYet, noMetadata},
	"stableMetadata":              {notYet, noMetadata},
	"replicaProgressThreshold":    {notYet, "leave it out: a step is done when all of its pods serve"},
	"scaleDownDelayRevisionLimit": {ignored, "a promotion leaves one old ReplicaSet with pods at most"},
}

var blueGreenFields = map[string]fieldRule{
	"activeService": {}, "previewService": {}, "previewReplicaCount": {}, "autoPromotionEnabled": {}, "autoPromotionSeconds": {},
	"scaleDownDelaySeconds": {}, "abortScaleDownDelaySeconds": {},
	"prePromotionAnalysis": {}, "postPromotionAnalysis": {},
	"antiAffinity":                {notYet, "put the affinity into the pod template"},
	"previewMetadata":             {notYet, noMetadata},
	"activeMetadata":              {notYet, noMetadata},
	"maxUnavailable":              {ignored, "it only matters to restarts, and the whole second set of pods is started at once"},
	"scaleDownDelayRevisionLimit": {ignored, "a promotion leaves one old ReplicaSet with pods at most"},
}

// stepActions are the actions of a step that are carried out.
var stepActions = []string{"setWeight", "pause", "setCanaryScale", "setHeaderRoute", "setMirrorRoute", "match", "analysis", "experiment"}

var stepFields = map[string]fieldRule{
	"name": {}, "setWeight": {}, "pause": {}, "setCanaryScale": {},
	"analysis":       {},
	"experiment":     {},
	"setHeaderRoute": {}, "setMirrorRoute": {}, "match": {},
	"plugin": {notYet, "leave it out, and pause where something has to be done"},
}

var pauseFields = map[string]fieldRule{"duration": {}, "until": {}, "timeZone": {}, "timeout": {}, "onTimeout": {}}

var canaryScaleFields = map[string]fieldRule{"replicas": {}, "weight": {}, "matchTrafficWeight": {}}

// trafficFields are the fields of trafficRouting besides the routers, whose own
// fields package traffic knows.
var trafficFields = map[string]fieldRule{
	"maxTrafficWeight": {}, "managedRoutes": {}, "settle": {}, "sticky": {}, "plugins": {},
	"appMesh": {refused, "AWS has ended App Mesh; use gatewayAPI, istio or alb"},
}

var (
	pluginFields       = map[string]fieldRule{gatewayPlugin: {}}
	managedRouteFields = map[string]fieldRule{"name": {}}
	stickyFields       = map[string]fieldRule{"cookie": {}, "maxAge": {}}
	pingPongFields     = map[string]fieldRule{"pingService": {}, "pongService": {}}
	headerRouteFields  = map[string]fieldRule{"name": {}, "match": {}}
	headerMatchFields  = map[string]fieldRule{"headerName": {}, "headerValue": {}}
	mirrorRouteFields  = map[string]fieldRule{"name": {}, "match": {}, "percentage": {}}
	mirrorMatchFields  = map[string]fieldRule{"method": {}, "path": {}, "headers": {}}
	textMatchFields    = map[string]fieldRule{"exact": {}, "prefix": {}, "regex": {}}
	namedMatchFields   = map[string]fieldRule{"name": {}, "exact": {}, "prefix": {}, "regex": {}}
	matchFields        = map[string]fieldRule{"headers": {}, "cookies": {}, "queryParams": {}, "path": {}, "method": {}, "source": {}}
)

// analysisFields are those of a background analysis; a step's has no
// startingStep.
var (
	analysisFields     = withField(stepAnalysisFields, "startingStep")
	stepAnalysisFields = map[string]fieldRule{
		"templates": {}, "args": {}, "dryRun": {}, "measurementRetention": {},
		"analysisRunMetadata": {ignored, "there are no AnalysisRuns that could carry it"},
	}
	templateRefFields = map[string]fieldRule{"templateName": {}, "clusterScope": {}}
	dryRunFields      = map[string]fieldRule{"metricName": {}}
	retentionFields   = map[string]fieldRule{"metricName": {}, "limit": {}}
	argFields         = map[string]fieldRule{"name": {}, "value": {}, "valueFrom": {}}
	valueFromFields   = map[string]fieldRule{"podTemplateHashValue": {}, "fieldRef": {}}
	fieldRefFields    = map[string]fieldRule{"fieldPath": {}}
)

// The fields of an experiment. Its progressDeadlineSeconds and scaleDownDelaySeconds
// are those of Argo Rollouts' own kind Experiment.
var (
	experimentFields = map[string]fieldRule{
		"templates": {}, "analyses": {}, "duration": {}, "progressDeadlineSeconds": {}, "dryRun": {},
		"scaleDownDelaySeconds": {ignored, "no user's request is on its way to the pods, so they go when the step ends"},
		"analysisRunMetadata":   {ignored, "there are no AnalysisRuns that could carry it"},
	}
	experimentTemplateFields = map[string]fieldRule{
		"name": {}, "specRef": {}, "replicas": {}, "metadata": {}, "selector": {}, "service": {},
		"weight": {notYet, "leave it out: routers split users' requests between stable and canary only; give the template a service, and send requests there"},
	}
	experimentMetadataFields = map[string]fieldRule{"labels": {}, "annotations": {}}
	experimentServiceFields  = map[string]fieldRule{"name": {}}
	experimentSelectorFields = map[string]fieldRule{"matchLabels": {}, "matchExpressions": {}}
	experimentAnalysisFields = map[string]fieldRule{
		"name": {}, "templateName": {}, "clusterScope": {}, "templates": {}, "args": {}, "requiredForCompletion": {},
		"analysisRunMetadata": {ignored, "there are no AnalysisRuns that could carry it"},
	}
)

func withField(rules map[string]fieldRule, name string) map[string]fieldRule {
	out := maps.Clone(rules)
	out[name] = fieldRule{}
	return out
}
