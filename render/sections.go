package render

import (
	"slices"
	"strings"
)

// Field is what is known of one field of a Rollout document, for the schemas that
// editors check documents by.
type Field struct {
	Name    string
	Ignored bool   // accepted without effect, for the reason in Note
	Note    string //
}

// Sections lists the fields that are accepted in each mapping of a Rollout
// document, sorted by name: of Argo Rollouts' kind, or of the own one.
func Sections(argo bool) map[string][]Field {
	tables := map[string]map[string]fieldRule{
		"spec": specFields(argo), "analysisHistory": analysisHistoryFields, "workloadRef": workloadRefFields, "rollbackWindow": rollbackWindowFields,
		"strategy": strategyFields, "canary": canaryFields, "blueGreen": blueGreenFields, "step": stepFields, "pause": pauseFields,
		"canaryScale": canaryScaleFields, "trafficRouting": trafficRules(), "plugins": pluginFields, "managedRoute": managedRouteFields,
		"sticky": stickyFields, "pingPong": pingPongFields, "headerRoute": headerRouteFields, "headerMatch": headerMatchFields,
		"mirrorRoute": mirrorRouteFields, "mirrorMatch": mirrorMatchFields, "textMatch": textMatchFields, "namedMatch": namedMatchFields,
		"match": matchFields, "analysis": analysisFields, "stepAnalysis": stepAnalysisFields, "templateRef": templateRefFields,
		"dryRun": dryRunFields, "retention": retentionFields, "arg": argFields, "valueFrom": valueFromFields, "fieldRef": fieldRefFields,
		"experiment": experimentFields, "experimentTemplate": experimentTemplateFields, "experimentMetadata": experimentMetadataFields,
		"experimentService": experimentServiceFields, "experimentSelector": experimentSelectorFields, "experimentAnalysis": experimentAnalysisFields,
	}
	sections := make(map[string][]Field, len(tables))
	for name, rules := range tables {
		sections[name] = []Field{}
		for field, rule := range rules {
			if rule.support == notYet || rule.support == refused || argo && slices.Contains(ownOnly[name], field) {
				continue
			}
			sections[name] = append(sections[name], Field{Name: field, Ignored: rule.support == ignored, Note: rule.note})
		}
		slices.SortFunc(sections[name], func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	}
	return sections
}

// ownOnly are the fields that a document of Argo Rollouts cannot have, because
// Argo Rollouts would not understand it.
var ownOnly = map[string][]string{
	"canary": {"scaling"}, "step": {"name", "match"}, "pause": {"until", "timeZone", "timeout", "onTimeout"},
	"experiment": {"progressDeadlineSeconds"}, "experimentAnalysis": {"templates"},
	"trafficRouting": {"settle", "sticky", "gatewayAPI", "object"},
}

// StepActions are the fields of a step of which it has exactly one.
func StepActions() []string { return slices.Clone(stepActions) }
