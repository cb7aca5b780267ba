// Package schema generates a JSON Schema per kind of document, for editors, from the document reader's tables and
// types. The package is pure.
package schema

import (
	"encoding/json"
	"fmt"
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

type node map[string]any

var own = strings.Join(rollout.Versions("Rollout"), " ")

type kind struct {
	name  string // for "gitrollout schema"
	of    string // the kind; for a Rollout, its apiVersions
	title string
	make  func(of string) node
}

func kinds() []kind {
	return []kind{
		{"config", "Config", "The apps of a cluster: .gitrollout/<cluster>/config.yaml", fileSchema},
		{"promotion", "Promotion", "A decision about a release: .gitrollout/<cluster>/promote/<app>.yaml", fileSchema},
		{"freeze", "Freeze", "A time without releases: .gitrollout/<cluster>/freeze.yaml", fileSchema},
		{"fleet", "Fleet", "The stages of all clusters: .gitrollout/fleet.yaml", fileSchema},
		{"policy", "Policy", "What the apps of a cluster may do: the file for gitrollout run --policy", fileSchema},
		{"vendor", "Vendor", "Remote sources to vendor: vendor.yaml", fileSchema},
		{"rollout", own, "How a workload is released", rolloutSchema},
		{"argo-rollout", "argoproj.io/v1alpha1", "A Rollout of Argo Rollouts, as far as gitrollout reads it", rolloutSchema},
		{"analysistemplate", "AnalysisTemplate", "The measurements during a release", templateSchema},
		{"clusteranalysistemplate", "ClusterAnalysisTemplate", "An AnalysisTemplate for all namespaces of an app",
			templateSchema},
	}
}

// Names returns the names that Of accepts.
func Names() []string {
	return rollout.Mapped(kinds(), func(k kind) string { return k.name })
}

// Title returns a short description of a kind, or "".
func Title(name string) string {
	k, _ := rollout.Find(kinds(), func(k kind) bool { return k.name == name })
	return k.title
}

// URL returns the URL of a kind's published schema (docs/schemas).
func URL(name string) string { return "https://gitrollout.dev/schemas/" + name + ".json" }

// Of returns a kind's schema.
func Of(name string) ([]byte, error) {
	k, known := rollout.Find(kinds(), func(k kind) bool { return strings.EqualFold(k.name, name) })
	if !known {
		return nil, fmt.Errorf("%q is not a kind of document; supported kinds: %s", name, strings.Join(Names(), ", "))
	}
	s := k.make(k.of)
	s["$schema"] = "http://json-schema.org/draft-07/schema#" // the newest that the YAML language server supports
	s["$id"], s["title"] = URL(k.name), k.title
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

func metadata() node {
	texts := node{"type": "object", "additionalProperties": node{"type": "string"}}
	return node{"type": "object", "required": []string{"name"}, "properties": node{
		"name": text(), "namespace": text(), "labels": texts, "annotations": texts,
	}}
}

func closed(fields node) node {
	return node{"type": "object", "additionalProperties": false, "properties": fields}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func text() node                       { return node{"type": "string"} }
func list(of node) node                { return node{"type": "array", "items": of} }
func oneOf(values ...string) node      { return node{"enum": values} }
func anything() node                   { return node{} }
func pattern(p string) node            { return node{"type": "string", "pattern": p} }
func either(alternatives ...node) node { return node{"anyOf": alternatives} }

func rolloutSchema(version string) node {
	argo := version != own
	blocks := &maker{omit: true}
	routers := node{}
	for kind, t := range traffic.Types() {
		routers[kind] = blocks.of(t, rollout.Field{})
	}
	m := &maker{argo: argo, names: map[string]node{render.Routers: routers, "gatewayAPI": routers["gatewayAPI"].(node)}}
	if argo { // in Argo Rollouts, the Gateway API is a plugin
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
	ref := spec["properties"].(node)["workloadRef"].(node)
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
	return headed(s, kind, strings.Join(rollout.Versions(kind), " "))
}

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
	return headed(s, kind, "argoproj.io/v1alpha1 "+own, "metadata", "spec")
}
