package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
)

// ofType is the schema of what encoding/json reads into a Go type. A field is
// required unless its tag says omitempty. A list stands for one of its elements,
// too, where it is a type of its own.
func ofType(t reflect.Type) node {
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem())
	case reflect.Struct:
		fields, required := structFields(t)
		return closed(fields, required...)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return anything()
		}
		if t.Name() != "" {
			return either(ofType(t.Elem()), list(ofType(t.Elem())))
		}
		return list(ofType(t.Elem()))
	case reflect.Map:
		return node{"type": "object", "additionalProperties": ofType(t.Elem())}
	case reflect.String:
		if t.Name() == "numberOrText" || t.Name() == "stepText" { // with an UnmarshalJSON that takes both
			return either(node{"type": "integer"}, text())
		}
		return text()
	case reflect.Bool:
		return boolean()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return node{"type": "integer"}
	case reflect.Float64:
		return node{"type": "number"}
	default:
		return anything()
	}
}

func structFields(t reflect.Type) (fields node, required []string) {
	fields = node{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields[name] = ofType(f.Type)
		if !strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Pointer {
			required = append(required, name)
		}
	}
	return fields, required
}

// written is what the files below .gitrollout ask for besides the types of
// their fields: by kind, what is required, and by path of a field its schema.
var written = map[string]struct {
	required []string
	fields   map[string]func() node
}{
	"Config": {[]string{"apps"}, map[string]func() node{
		"interval": span, "stateBranch": func() node { return pattern("^gitrollout/") },
		"apps":           func() node { return node{"minItems": 1} },
		"apps.path":      func() node { return pattern(`^[^/]`) },
		"apps.name":      label,
		"apps.namespace": label,
		"forge.type":     func() node { return oneOf("github", "gitlab", "gitea") },
		"forge.url":      func() node { return pattern("^https?://") },
		"forge.labels":   func() node { return node{"maxItems": 10} }, "forge.reviewers": func() node { return node{"maxItems": 10} },
		"windows.kind": func() node { return oneOf("allow", "deny") }, "windows.duration": span, "windows.apps": func() node { return node{"items": name()} },
		"autoRevert": func() node { return node{"enum": []any{"propose", "push", "off", false}} },
	}},
	"Promotion": {[]string{"release"}, map[string]func() node{
		"release": func() node { return pattern("^h[0-9]+-[0-9a-f]+$") }, "through": func() node { return either(count(), name()) },
		"decision": func() node { return oneOf("promote", "hold", "abort", "retry") },
	}},
	"Freeze": {[]string{"reason"}, map[string]func() node{
		"reason": name, "until": func() node { return pattern(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`) },
		"apps": func() node { return node{"items": name()} },
	}},
}

func label() node { return pattern(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`) }

// requiredBelow are the fields that entries of a Config's lists must have.
var requiredBelow = map[string][]string{"apps": {"path"}, "windows": {"kind", "schedule", "duration"}}

// fileSchema is that of a file below .gitrollout. A field of any type is one that
// is kept for later, and refused, unless something is said of it.
func fileSchema(kind string) node {
	t := rollout.FileTypes()[kind]
	s := ofType(t)
	optional(s)
	rules := written[kind]
	fields := s["properties"].(node)
	for field, v := range fields {
		if n := v.(node); len(n) == 0 && rules.fields[field] == nil {
			delete(fields, field)
		}
	}
	if kind == "Config" {
		services(fields)
	}
	for path, make := range rules.fields {
		refine(s, strings.Split(path, "."), make())
	}
	for field, required := range requiredBelow {
		if below, ok := fields[field].(node); ok && kind == "Config" {
			below["items"].(node)["required"] = required
		}
	}
	fields["apiVersion"], fields["kind"] = node{"const": rollout.APIVersion}, node{"const": kind}
	s["required"] = append([]string{"apiVersion", "kind"}, rules.required...)
	return s
}

// services leaves each notification service the fields that it has, and a receiver
// exactly one service.
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

// optional makes no field required: the forms of these files do without omitempty.
func optional(s node) {
	delete(s, "required")
	for _, below := range []any{s["items"], s["additionalProperties"]} {
		if n, ok := below.(node); ok {
			optional(n)
		}
	}
	fields, _ := s["properties"].(node)
	for _, f := range fields {
		optional(f.(node))
	}
}

// refine adds to the schema of a field, through lists.
func refine(s node, path []string, more node) {
	if items, ok := s["items"].(node); ok {
		s = items
	}
	fields, ok := s["properties"].(node)
	if !ok {
		return
	}
	field, ok := fields[path[0]].(node)
	switch {
	case !ok:
	case len(path) > 1:
		refine(field, path[1:], more)
	case more["enum"] != nil, more["anyOf"] != nil:
		fields[path[0]] = more
	default:
		maps.Copy(field, more)
	}
}

// templateSchema is that of an AnalysisTemplate.
func templateSchema(kind string) node {
	s := document([]string{"argoproj.io/v1alpha1", "gitrollout.dev/v1alpha1"}, kind)
	spec := ofType(reflect.TypeFor[analysis.TemplateSpec]())
	spec["properties"].(node)["metrics"] = list(metric())
	spec["properties"].(node)["args"] = list(argument())
	fields := s["properties"].(node)
	fields["metadata"], fields["spec"], fields["status"] = metadata(), spec, anything()
	s["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
	return s
}

// argument is that of a template: its value, or where in a Secret it is.
func argument() node {
	secret := closed(node{"name": name(), "key": name()}, "name", "key")
	return closed(node{"name": name(), "value": text(), "valueFrom": closed(node{"secretKeyRef": secret}, "secretKeyRef")}, "name")
}

// metric is one metric of a template. A number can be a text with an argument in it.
func metric() node {
	s := ofType(analysis.MetricType())
	fields := s["properties"].(node)
	for field, v := range fields {
		if n := v.(node); len(n) != 0 {
			continue
		}
		least, sign := 0, ""
		if field == "failureLimit" { // -1: measurements that fail decide nothing
			least, sign = -1, "-?"
		}
		fields[field] = either(number(least, 2147483647), pattern(`^\s*`+sign+`[0-9]+\s*$|\{\{\s*args\.`))
	}
	fields["onNoData"] = oneOf("", "wait", "pass", "fail")
	for _, field := range []string{"interval", "initialDelay"} {
		fields[field] = either(span(), pattern(`\{\{\s*args\.`), node{"const": ""})
	}
	fields["compare"] = closed(node{"to": node{"const": "stable"}, "maxIncrease": node{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, "confidence": node{"type": "number"}}, "to")
	providers := node{}
	for kind, t := range provider.Types() {
		providers[kind] = ofType(t)
	}
	one := closed(providers)
	one["minProperties"], one["maxProperties"] = 1, 1
	fields["provider"] = one
	s["required"] = []string{"name", "provider"}
	return s
}
