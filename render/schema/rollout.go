package schema

import (
	"slices"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/traffic"
)

// rolloutSchema is that of a Rollout document.
func rolloutSchema(argo bool) node {
	version := "gitrollout.dev/v1alpha1"
	if argo {
		version = "argoproj.io/v1alpha1"
	}
	s := document([]string{version}, "Rollout")
	m := &maker{argo: argo, sections: render.Sections(argo)}
	fields := s["properties"].(node)
	fields["metadata"], fields["spec"], fields["status"] = metadata(), m.section("spec"), anything()
	s["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
	return s
}

// maker makes schemas out of render's tables of fields.
type maker struct {
	argo     bool
	sections map[string][]render.Field
}

// section is a mapping with the fields of one table.
func (m *maker) section(section string) node {
	fields, types := node{}, m.types(section)
	for _, f := range m.sections[section] {
		if f.Ignored {
			fields[f.Name] = node{"description": "ignored: " + f.Note}
			continue
		}
		typed, ok := types[f.Name]
		if !ok {
			typed = text()
		}
		fields[f.Name] = typed
	}
	s := closed(fields)
	for key, v := range m.rules(section) {
		s[key] = v
	}
	return s
}

// rules are what holds for a mapping besides the types of its fields.
func (m *maker) rules(section string) node {
	switch section {
	case "strategy", "canaryScale", "textMatch":
		return node{"minProperties": 1, "maxProperties": 1}
	case "namedMatch":
		return node{"minProperties": 2, "maxProperties": 2, "required": []string{"name"}}
	case "match", "mirrorMatch", "valueFrom":
		return node{"minProperties": 1}
	case "blueGreen":
		return node{"required": []string{"activeService"}}
	case "analysis", "stepAnalysis":
		return node{"required": []string{"templates"}}
	case "templateRef":
		return node{"required": []string{"templateName"}}
	case "experiment":
		return node{"required": []string{"templates"}}
	case "experimentTemplate":
		return node{"required": []string{"name", "specRef"}}
	case "experimentAnalysis":
		return node{"required": []string{"name"}}
	case "workloadRef":
		return node{"required": []string{"apiVersion", "kind", "name"}}
	case "pingPong":
		return node{"required": []string{"pingService", "pongService"}}
	case "arg", "managedRoute", "headerRoute", "mirrorRoute":
		return node{"required": []string{"name"}}
	case "headerMatch":
		return node{"required": []string{"headerName", "headerValue"}}
	case "retention":
		return node{"required": []string{"metricName", "limit"}}
	case "dryRun":
		return node{"required": []string{"metricName"}}
	case "step":
		return node{"oneOf": m.oneAction()}
	case "spec":
		return m.specRules()
	default:
		return nil
	}
}

// oneAction says that a step has exactly one action.
func (m *maker) oneAction() []node {
	var one []node
	for _, action := range render.StepActions() {
		if slices.ContainsFunc(m.sections["step"], func(f render.Field) bool { return f.Name == action }) {
			one = append(one, node{"required": []string{action}})
		}
	}
	return one
}

func (m *maker) specRules() node {
	if !m.argo {
		return node{"required": []string{"strategy", "workloadRef"}}
	}
	return node{"required": []string{"strategy"}, "oneOf": []node{
		{"required": []string{"workloadRef"}},
		{"required": []string{"selector", "template"}},
	}}
}

// types are the types of a section's fields; what is not here is a text.
func (m *maker) types(section string) node {
	switch section {
	case "spec":
		return node{
			"replicas": count(), "minReadySeconds": count(), "revisionHistoryLimit": count(), "paused": boolean(),
			"progressDeadlineSeconds": count(), "progressDeadlineAbort": boolean(), "rollbackWindow": m.section("rollbackWindow"),
			"workloadRef": m.section("workloadRef"), "strategy": m.section("strategy"), "template": mapping(), "selector": mapping(),
		}
	case "rollbackWindow":
		return node{"revisions": count()}
	case "workloadRef":
		return node{"apiVersion": node{"const": "apps/v1"}, "kind": node{"const": "Deployment"}, "name": name()}
	case "strategy":
		return node{"canary": m.section("canary"), "blueGreen": m.section("blueGreen")}
	case "canary":
		return node{
			"steps": list(m.section("step")), "maxSurge": amount(), "maxUnavailable": amount(), "dynamicStableScale": boolean(),
			"minPodsPerReplicaSet": count(), "abortScaleDownDelaySeconds": count(), "scaleDownDelaySeconds": count(),
			"scaling": oneOf("inPlace", "surge"), "trafficRouting": m.trafficRouting(), "pingPong": m.section("pingPong"), "analysis": m.section("analysis"),
		}
	case "blueGreen":
		return node{
			"activeService": name(), "previewReplicaCount": count(), "autoPromotionEnabled": boolean(), "autoPromotionSeconds": count(),
			"scaleDownDelaySeconds": count(), "abortScaleDownDelaySeconds": count(),
			"prePromotionAnalysis": m.section("stepAnalysis"), "postPromotionAnalysis": m.section("stepAnalysis"),
		}
	case "step":
		return node{
			"setWeight": number(0, 1_000_000), "pause": m.section("pause"), "setCanaryScale": m.section("canaryScale"), "analysis": m.section("stepAnalysis"),
			"setHeaderRoute": m.section("headerRoute"), "setMirrorRoute": m.section("mirrorRoute"), "match": list(m.section("match")), "name": name(),
			"experiment": m.section("experiment"),
		}
	case "pause":
		return node{"duration": seconds(), "timeout": seconds(), "onTimeout": oneOf("abort", "promote")}
	case "canaryScale":
		return node{"replicas": count(), "weight": number(0, 100), "matchTrafficWeight": boolean()}
	case "pingPong":
		return node{"pingService": name(), "pongService": name()}
	default:
		return m.moreTypes(section)
	}
}

// moreTypes are those of routes and analyses.
func (m *maker) moreTypes(section string) node {
	switch section {
	case "sticky":
		return node{"cookie": pattern(`^[A-Za-z0-9_-]{1,100}$`), "maxAge": seconds()}
	case "managedRoute":
		return node{"name": pattern(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)}
	case "headerRoute":
		return node{"name": name(), "match": list(m.section("headerMatch"))}
	case "headerMatch":
		return node{"headerName": name(), "headerValue": m.section("textMatch")}
	case "mirrorRoute":
		return node{"name": name(), "match": list(m.section("mirrorMatch")), "percentage": number(0, 100)}
	case "mirrorMatch":
		return node{"method": m.section("textMatch"), "path": m.section("textMatch"), "headers": node{"type": "object", "additionalProperties": m.section("textMatch")}}
	case "match":
		named := list(m.section("namedMatch"))
		return node{"headers": named, "cookies": named, "queryParams": named, "path": m.section("textMatch"), "method": m.section("textMatch"), "source": m.section("textMatch")}
	case "textMatch":
		return node{"exact": name(), "prefix": name(), "regex": name()}
	case "namedMatch":
		return node{"name": name(), "exact": name(), "prefix": name(), "regex": name()}
	case "analysis", "stepAnalysis":
		return node{
			"templates": atLeastOne(m.section("templateRef")), "args": list(m.section("arg")), "dryRun": list(m.section("dryRun")),
			"measurementRetention": list(m.section("retention")), "startingStep": count(),
		}
	case "templateRef":
		return node{"templateName": name(), "clusterScope": boolean()}
	case "retention":
		return node{"limit": number(1, 2147483647)}
	case "arg":
		return node{"name": name(), "valueFrom": m.section("valueFrom")}
	case "valueFrom":
		return node{"podTemplateHashValue": oneOf("Stable", "Latest"), "fieldRef": m.section("fieldRef")}
	case "experiment":
		return node{
			"templates": atLeastOne(m.section("experimentTemplate")), "analyses": list(m.section("experimentAnalysis")), "duration": seconds(),
			"progressDeadlineSeconds": number(1, 2147483647), "dryRun": list(m.section("dryRun")),
		}
	case "experimentTemplate":
		return node{
			"name": partName(), "specRef": oneOf("stable", "canary"), "replicas": number(1, 2147483647), "metadata": m.section("experimentMetadata"),
			"selector": m.section("experimentSelector"), "service": m.section("experimentService"),
		}
	case "experimentMetadata":
		return node{"labels": texts(), "annotations": texts()}
	case "experimentSelector":
		return node{"matchLabels": texts(), "matchExpressions": list(mapping())}
	case "experimentService":
		return node{"name": label()}
	case "experimentAnalysis":
		return node{
			"name": partName(), "templateName": name(), "clusterScope": boolean(), "templates": list(m.section("templateRef")),
			"args": list(m.section("arg")), "requiredForCompletion": boolean(),
		}
	case "analysisHistory":
		return node{"successfulRunHistoryLimit": count(), "unsuccessfulRunHistoryLimit": count()}
	default:
		return nil
	}
}

// trafficRouting has the routers' own blocks, too.
func (m *maker) trafficRouting() node {
	fields := node{
		"maxTrafficWeight": number(1, 1_000_000), "managedRoutes": list(m.section("managedRoute")), "settle": either(count(), span()), "sticky": m.section("sticky"),
	}
	routers := node{}
	for kind, t := range traffic.Types() {
		routers[kind] = ofType(t)
	}
	all := node{}
	for _, f := range m.sections["trafficRouting"] {
		switch {
		case f.Name == "plugins":
			all[f.Name] = m.plugins(routers["gatewayAPI"].(node))
		case fields[f.Name] != nil:
			all[f.Name] = fields[f.Name]
		default:
			all[f.Name] = routers[f.Name]
		}
	}
	return closed(all)
}

// plugins is how Argo Rollouts names the Gateway API.
func (m *maker) plugins(gateway node) node {
	fields := node{}
	for _, f := range m.sections["plugins"] {
		fields[f.Name] = gateway
	}
	return closed(fields)
}

// partName becomes part of other names.
func partName() node { return pattern(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`) }

func texts() node { return node{"type": "object", "additionalProperties": text()} }
