package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

func rolloutSchema(version string) node {
	argo := version != rollout.APIVersion
	blocks := &maker{omit: true}
	routers := node{}
	for kind, t := range traffic.Types() {
		routers[kind] = blocks.of(t, rollout.Field{})
	}
	m := &maker{argo: argo, names: map[string]node{render.Routers: routers, "gatewayAPI": routers["gatewayAPI"].(node)}}
	if argo { // the Gateway API is a plugin
		m.names[render.Routers] = maps.Clone(routers)
		delete(m.names[render.Routers], "gatewayAPI")
		delete(m.names[render.Routers], "object")
	}
	s := m.of(render.Form(), rollout.Field{})
	fields := s["properties"].(node)
	fields["metadata"] = metadata()
	spec := fields["spec"].(node)
	if template := (node{"required": []string{"selector", "template"}}); argo {
		spec["oneOf"] = []node{{"required": []string{"workloadRef"}}, template}
	} else {
		spec["required"] = []string{"strategy", "workloadRef"}
	}
	ref := spec["properties"].(node)["workloadRef"].(node) // the configuration can add kinds of any group
	kinds := rollout.Mapped(rollout.WorkloadKinds, func(kind rollout.Ref) string { return kind.Kind })
	ref["if"] = node{"properties": node{"apiVersion": node{"const": "apps/v1"}}}
	ref["then"] = node{"properties": node{"kind": oneOf(kinds...)}}
	return headed(s, "Rollout", version, "metadata", "spec")
}

func headed(s node, kind, version string, required ...string) node {
	fields := s["properties"].(node)
	fields["apiVersion"], fields["kind"] = oneOf(strings.Fields(version)...), node{"const": kind}
	own, _ := s["required"].([]string)
	s["required"] = slices.Compact(sorted(slices.Concat(own, required, []string{"apiVersion", "kind"})))
	return s
}

func fileSchema(kind string) node {
	m := &maker{}
	s := m.of(rollout.FileTypes()[kind], rollout.Field{})
	if kind == "Config" {
		services(s["properties"].(node))
	}
	if kind == "Promotion" { // StepsVersion counts from 1, APIVersion from 0
		return headed(s, kind, rollout.StepsVersion+" "+rollout.APIVersion)
	}
	return headed(s, kind, rollout.APIVersion)
}

// services gives each notification service only its fields, and each receiver one service.
func services(config node) {
	receiver := config["notifications"].(node)["items"].(node)
	fields := receiver["properties"].(node)
	var one []node
	for _, name := range slices.Sorted(maps.Keys(rollout.Services())) {
		service := rollout.Services()[name]
		block := fields[name].(node)
		all := block["properties"].(node)
		own, required := node{}, []string{}
		for _, field := range slices.Concat(service.Needs, service.May) {
			either := strings.Split(field, "|")
			for _, f := range either {
				own[f] = all[f]
			}
			if len(either) == 1 && slices.Contains(service.Needs, field) {
				required = append(required, field)
			}
		}
		if block["properties"] = own; len(required) > 0 {
			block["required"] = required
		}
		one = append(one, node{"required": []string{name}})
	}
	receiver["oneOf"], receiver["required"] = one, []string{"name"}
	fields["events"] = list(node{"enum": rollout.EventKinds()})
}

func templateSchema(kind string) node {
	blocks, providers := &maker{omit: true}, node{}
	for kind, t := range provider.Types() {
		providers[kind] = blocks.of(t, rollout.Field{})
	}
	one := closed(providers)
	one["minProperties"], one["maxProperties"] = 1, 1
	metric := (&maker{args: true}).of(analysis.MetricType(), rollout.Field{})
	metric["properties"].(node)["provider"] = one
	spec := (&maker{}).of(reflect.TypeFor[analysis.TemplateSpec](), rollout.Field{})
	spec["properties"].(node)["metrics"] = list(metric)
	s := closed(node{"metadata": metadata(), "spec": spec, "status": anything()})
	return headed(s, kind, "argoproj.io/v1alpha1 "+rollout.APIVersion, "metadata", "spec")
}
