// Package schema has a JSON Schema for each kind of document that people write: what editors complete and check
// documents by. It is made of the same tables and types that the documents are read by, so that it cannot fall behind
// them; what only the whole app shows (that a Service exists, that a selector matches) is for gitrollout validate.
//
// It is pure. Its neighbours: rollout, render, traffic, analysis and
// analysis/provider, which know the fields; cmd/gitrollout, which prints them.
package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// base is where the schemas are published: the folder docs/schemas of the repository that serves this name.
const base = "https://gitrollout.dev/schemas/"

// draft is the version of JSON Schema: the newest one that the YAML language server understands in full.
const draft = "http://json-schema.org/draft-07/schema#"

// node is one JSON Schema.
type node map[string]any

// kind is one kind of document.
type kind struct {
	name, group string // as in gitrollout schema NAME
	title       string
	make        func() node
}

func kinds() []kind {
	const own, argo = "gitrollout.dev/v1alpha1", "argoproj.io/v1alpha1"
	return []kind{
		{"config", own, "The apps of a cluster: .gitrollout/<cluster>/config.yaml",
			func() node { return fileSchema("Config") }},
		{"promotion", own, "A decision about a release: .gitrollout/<cluster>/promote/<app>.yaml",
			func() node { return fileSchema("Promotion") }},
		{"freeze", own, "A time without releases: .gitrollout/<cluster>/freeze.yaml",
			func() node { return fileSchema("Freeze") }},
		{"policy", own, "What the apps of a cluster may do: the file of run --policy",
			func() node { return fileSchema("Policy") }},
		{"vendor", own, "What of elsewhere belongs into the repository: vendor.yaml",
			func() node { return fileSchema("Vendor") }},
		{"rollout", own, "How a Deployment is released", func() node { return rolloutSchema(false) }},
		{"argo-rollout", argo, "A Rollout of Argo Rollouts, as far as gitrollout reads it",
			func() node { return rolloutSchema(true) }},
		{"analysistemplate", argo, "What is measured while a release moves",
			func() node { return templateSchema("AnalysisTemplate") }},
		{"clusteranalysistemplate", argo, "An AnalysisTemplate for all namespaces of an app",
			func() node { return templateSchema("ClusterAnalysisTemplate") }},
	}
}

// Names lists the kinds, as Of takes them.
func Names() []string {
	return rollout.Mapped(kinds(), func(k kind) string { return k.name })
}

// Title says what a kind is for, "" if there is none of that name.
func Title(name string) string {
	for _, k := range kinds() {
		if k.name == name {
			return k.title
		}
	}
	return ""
}

// URL is where the schema of a kind is published.
func URL(name string) string { return base + name + ".json" }

// Of returns the schema of a kind of document.
func Of(name string) ([]byte, error) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return strings.EqualFold(k.name, name) })
	if i < 0 {
		return nil, fmt.Errorf("%q is not a kind of document; use one of %s", name, strings.Join(Names(), ", "))
	}
	s := all[i].make()
	s["$schema"], s["$id"], s["title"] = draft, URL(all[i].name), all[i].title
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

// metadata is that of an object of Kubernetes.
func metadata() node {
	texts := node{"type": "object", "additionalProperties": node{"type": "string"}}
	return node{"type": "object", "required": []string{"name"}, "properties": node{
		"name": text(), "namespace": text(), "labels": texts, "annotations": texts,
	}}
}

// closed is a mapping with these fields only.
func closed(fields node, required ...string) node {
	s := node{"type": "object", "additionalProperties": false, "properties": fields}
	if len(required) > 0 {
		s["required"] = sorted(required)
	}
	return s
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func text() node                       { return node{"type": "string"} }
func name() node                       { return node{"type": "string", "minLength": 1} }
func boolean() node                    { return node{"type": "boolean"} }
func list(of node) node                { return node{"type": "array", "items": of} }
func oneOf(values ...string) node      { return node{"enum": values} }
func count() node                      { return number(0, 2147483647) }
func number(least, most int) node      { return node{"type": "integer", "minimum": least, "maximum": most} }
func anything() node                   { return node{} }
func pattern(p string) node            { return node{"type": "string", "pattern": p} }
func either(alternatives ...node) node { return node{"anyOf": alternatives} }
