package rollout

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Field is one field of a document. Struct tags describe it for the Reader, the JSON Schemas and the reference docs:
//
//	json:"name"     the field's name; without this tag, the field is not in documents
//	json:"*"        a map[string]any for all other fields
//	needs:"fix"     must not be absent or empty; the tag is the fix
//	default:"30"    the value, as JSON or plain text, for an absent field or empty text
//	oneOf:"a b"     the allowed texts; an empty text counts as absent
//	is:"label"      the format of texts: a key of Formats
//	like:"url"      the format for JSON Schemas only: other code checks it with better errors
//	min:"1" max:"9" bounds of a number or a list's length; default minimum of numbers: 0
//	fix:"…"         the fix for an invalid value
//	own:"fix"       not in Argo Rollouts: refused in its documents
//	argo:"fix"      only in Argo Rollouts: refused in gitrollout's documents
//	notYet:"fix"    not supported yet: refused
//	refused:"fix"   in the wrong place: refused
//	ignored:"why"   without effect: accepted with a warning
//
// A struct field _ with field:"name" describes a field that is not read. Other fields _ have rules for the whole
// mapping:
//
//	one:"a b" none:"fix" many:"fix"   exactly one of the fields a, b must be given
//	some:"fix"                        the mapping must not be empty
type Field struct {
	Name  string
	Type  reflect.Type
	Tag   reflect.StructTag
	index []int
}

// Rest names the map field for all other fields.
const Rest = "*"

// Fields returns a struct's fields in order, with the fields of embedded structs, and with fields _ that have rules.
func Fields(t reflect.Type) (all []Field) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Name == "_" {
			name = f.Tag.Get("field")
		}
		switch {
		case f.Anonymous && name == "":
			for _, inner := range Fields(f.Type) {
				inner.index = slices.Concat(f.Index, inner.index)
				all = append(all, inner)
			}
		case name != "" && name != "-" || f.Name == "_":
			all = append(all, Field{Name: name, Type: f.Type, Tag: f.Tag, index: f.Index})
		}
	}
	return slices.DeleteFunc(all, func(f Field) bool { // as in Go, an outer field hides an embedded field
		return f.Name != "" && slices.ContainsFunc(all,
			func(o Field) bool { return o.Name == f.Name && len(o.index) < len(f.index) })
	})
}

// In reports whether the field may be in documents of Argo Rollouts (argo is true) or of gitrollout.
func (f Field) In(argo bool) bool {
	return !f.Has(map[bool]string{true: "own", false: "argo"}[argo])
}

// Has reports whether the field has a tag.
func (f Field) Has(tag string) bool {
	_, has := f.Tag.Lookup(tag)
	return has
}

// Literal returns a tag's value as JSON or, if the value is no JSON, as text. It returns nil without the tag.
func (f Field) Literal(tag string) any {
	literal, has := f.Tag.Lookup(tag)
	if !has {
		return nil
	}
	v, err := FromJSON[any]([]byte(literal))
	if err != nil {
		return literal
	}
	return v
}

// Words returns a tag's words.
func (f Field) Words(tag string) []string { return strings.Fields(f.Tag.Get(tag)) }

// Format is a text's required format.
type Format struct {
	Pattern   *regexp.Regexp
	What, Fix string // the error for X is: "X is not " + What
}

// Formats returns the formats by the names in tags.
func Formats() map[string]Format { return formats }

var formats = map[string]Format{
	"label": {regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`),
		"a name", "use lower-case letters, digits and -, at most 63"},
	"namespaces": {regexp.MustCompile(`^[-a-z0-9*?]{1,63}$`),
		"a valid namespace", "use lower-case letters, digits and -, and * for any characters"},
	"account": {regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`),
		"a service account", "write namespace/name, or the name of a service account in the app's namespace"},
	"object": {regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`),
		"the name of an object", "use lower-case letters, digits, - and ."},
	"groupKind": {regexp.MustCompile(`^([-.a-z0-9*]+/)?[A-Za-z0-9*]+$`),
		"a kind", "write group/Kind, or Kind for the core group"},
	"kinds": {regexp.MustCompile(`^([-.a-z0-9*?]*/)?[A-Z*?][A-Za-z0-9*?]*$`),
		"a kind", "write group/Kind, or /Kind for the core group"},
	"kubernetes": {regexp.MustCompile(`^v?[0-9]+\.[0-9]+(\.[0-9]+.*)?$`), "a version of Kubernetes",
		"write 1.36.3 or the like"},
	"apiVersion": {regexp.MustCompile(`^[-.a-z0-9/]*v[a-z0-9]+(/[A-Za-z0-9]+)?$`), "a version of an API",
		"write group/version or group/version/Kind"},
	"groupVersion": {regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/v[a-z0-9]+$`), "a version of an API",
		"write group/version, as in example.com/v1"},
	"kindName": {regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`), "a kind", "write it as in manifests"},
	"specPath": {regexp.MustCompile(`^spec(\.[a-z][A-Za-z0-9]*)+$`), "a field below spec",
		"write its path, as in spec.updateStrategy.partition"},
	"statusPath": {regexp.MustCompile(`^status(\.[a-z][A-Za-z0-9]*)+$`), "a field below status",
		"write its path, as in status.updatedReplicas"},
	"service": {regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`),
		"a valid Service name", "use lower case letters, digits and -, a letter first, at most 63"},
	"part": {regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`),
		"valid in the names of objects", "use lower case letters, digits and -, at most 32"},
	"route": {regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`),
		"a valid route name: objects are named after the route", "use lower-case letters, digits and -, at most 40"},
	"cookie": {regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`), "a valid cookie name", "use letters, digits, - and _"},
	"header": {regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]{1,256}$"), // RFC 9110, 5.6.2
		"a valid header name", "use letters, digits, - and _, as in X-Staff"},
	"headerValue": {regexp.MustCompile(`^[!-~]+([\t ]?[!-~]+)*$`), // as in the Gateway API's HTTPHeader
		"a valid header value", "use ASCII characters, with single spaces between them"},
	"hash":   {regexp.MustCompile(`^[ch][0-9]+-[0-9a-f]+$`), "the hash of a release", "write it as in h1-7b4e2a91d0"},
	"branch": {regexp.MustCompile(`^gitrollout/`), "below gitrollout/", "use gitrollout/state/<cluster>"},
	"repository": {regexp.MustCompile(`^([a-z+]+://([^/@:]+@)?[^/@]+/|[^/@:]+@[^/:]+:|/).+$`), // without a password
		"the address of a repository", "write https://host/path.git or git@host:path.git, without a password"},
	"folder": {regexp.MustCompile(`^[^/]`), "a folder", "paths are relative to the repository's root"},
	"author": {regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`), "a pattern for authors",
		"write a name or an address, with * for any characters: '*[bot]'"},
	"glob": {regexp.MustCompile(`^[^/]+$`), "a pattern for app names",
		"name an app, with * ? [] for parts of the name: shop-*"},
	"url": {regexp.MustCompile(`^https?://`), "an address", "write https://host or the like"},
	"time": {regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`), "a time",
		"write 2027-01-07T08:00:00+01:00 or the like, or leave it out"},
	"span": {
		regexp.MustCompile(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`), "a duration", "write 30s, 5m, 1h30m or the like",
	},
}

// Shaped is a type with its own JSON Schema.
type Shaped interface{ Shape() map[string]any }

func either(alternatives ...any) map[string]any { return map[string]any{"anyOf": alternatives} }
func pattern(p string) map[string]any           { return map[string]any{"type": "string", "pattern": p} }

func suggest(name string, known []Field, argo bool) string {
	var names []string
	for _, f := range known {
		switch {
		case f.Has("unknown"):
			return f.Tag.Get("unknown")
		case f.Name == "" || f.Name == Rest || !f.In(argo):
		case strings.EqualFold(f.Name, name):
			return "did you mean " + f.Name + "?"
		case !f.Has("notYet") && !f.Has("refused") && !f.Has("ignored"):
			names = append(names, f.Name)
		}
	}
	if near := Closest(name, names); len(name) > 2 && len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	if len(names) == 0 || len(names) > 15 {
		return "correct its name, or leave it out"
	}
	slices.Sort(names)
	return "use one of " + strings.Join(names, ", ")
}
