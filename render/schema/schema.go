// Package schema generates a JSON Schema per kind of document, for editors, from the document reader's tables and
// types. "gitrollout validate" also checks the whole app. The package is pure.
package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

type node map[string]any

type kind struct {
	name  string // for "gitrollout schema"
	of    string // the kind; for a Rollout, the apiVersion
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
		{"rollout", rollout.APIVersion, "How a Deployment is released", rolloutSchema},
		{"argo-rollout", "argoproj.io/v1alpha1", "A Rollout of Argo Rollouts, as far as gitrollout reads it", rolloutSchema},
		{"analysistemplate", "AnalysisTemplate", "The measurements while a release moves", templateSchema},
		{"clusteranalysistemplate", "ClusterAnalysisTemplate", "An AnalysisTemplate for all namespaces of an app",
			templateSchema},
	}
}

// Names returns the names that Of accepts.
func Names() []string {
	return rollout.Mapped(kinds(), func(k kind) string { return k.name })
}

// Title returns a kind's purpose, or "" for an unknown kind.
func Title(name string) string {
	k, _ := rollout.Find(kinds(), func(k kind) bool { return k.name == name })
	return k.title
}

// URL returns a kind's published schema, from docs/schemas.
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
