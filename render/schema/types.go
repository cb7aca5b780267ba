package schema

import (
	"cmp"
	"maps"
	"reflect"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// maker generates schemas from structs' tags (rollout.Field).
type maker struct {
	argo  bool
	args  bool            // numbers and durations may be {{args.name}}
	omit  bool            // fields without omitempty are required
	names map[string]node // by tag "names": a field's schema, or schemas by field
}

func (m *maker) of(t reflect.Type, f rollout.Field) node {
	if own, is := reflect.New(t).Interface().(rollout.Shaped); is {
		return node(own.Shape())
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return m.duration(f)
	case reflect.TypeFor[time.Time]():
		return node{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.of(t.Elem(), f)
	case reflect.Struct:
		return m.mapping(t)
	case reflect.Slice:
		return m.list(t, f)
	case reflect.Map:
		return node{"type": "object", "additionalProperties": m.of(t.Elem(), rollout.Field{})}
	case reflect.String:
		return m.text(f)
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Float64:
		return node{"type": "number"}
	case reflect.Int, reflect.Int64:
		return m.whole(f)
	default:
		return anything()
	}
}

func (m *maker) mapping(t reflect.Type) node {
	fields, required := node{}, []string{}
	s := closed(fields)
	for _, f := range rollout.Fields(t) {
		switch {
		case f.Name == "":
			defer m.together(s, f)
		case f.Has("notYet"), f.Has("refused"), !f.In(m.argo):
		case f.Has("ignored"):
			fields[f.Name] = node{"description": "ignored: " + f.Tag.Get("ignored")}
		case f.Name == rollout.Rest:
			maps.Copy(fields, m.names[f.Tag.Get("names")])
		case f.Has("names"):
			fields[f.Name] = m.names[f.Tag.Get("names")]
		default:
			fields[f.Name] = m.of(f.Type, f)
			omitted := f.Type.Kind() == reflect.Pointer || strings.Contains(f.Tag.Get("json"), ",omitempty")
			if f.Has("needs") || m.omit && !omitted {
				required = append(required, f.Name)
			}
		}
	}
	if len(required) > 0 {
		s["required"] = sorted(required)
	}
	return s
}

func (m *maker) together(s node, f rollout.Field) {
	if f.Has("some") {
		s["minProperties"] = 1
	}
	if !f.Has("one") {
		return
	}
	var one []node
	for _, name := range f.Words("one") {
		if s["properties"].(node)[name] != nil {
			one = append(one, node{"required": []string{name}})
		}
	}
	s["oneOf"] = one
}

// list also allows a single element in place of the list, if the slice type has a name.
func (m *maker) list(t reflect.Type, f rollout.Field) node {
	if t.Elem().Kind() == reflect.Uint8 {
		return anything()
	}
	each := m.of(t.Elem(), f)
	if t.Name() != "" {
		return either(each, list(each))
	}
	s := list(each)
	if f.Has("needs") {
		s["minItems"] = 1
	}
	if most := f.Literal("max"); most != nil {
		s["maxItems"] = most
	}
	return s
}

func (m *maker) text(f rollout.Field) node {
	format, known := rollout.Formats()[f.Tag.Get("is")+f.Tag.Get("like")]
	switch allowed := f.Words("oneOf"); {
	case len(allowed) > 0:
		return oneOf(allowed...)
	case known:
		return pattern(format.Pattern.String())
	case f.Has("needs"):
		return node{"type": "string", "minLength": 1}
	default:
		return text()
	}
}

func (m *maker) whole(f rollout.Field) node {
	if m.omit {
		return node{"type": "integer"}
	}
	s, sign := node{"type": "integer", "minimum": 0, "maximum": 2147483647}, ""
	if least := f.Literal("min"); least != nil {
		s["minimum"] = least
		sign = "-?"
	}
	if most := f.Literal("max"); most != nil {
		s["maximum"] = most
	}
	if m.args {
		return either(s, pattern(`^\s*`+sign+`[0-9]+\s*$|`+argument))
	}
	return s
}

func (m *maker) duration(f rollout.Field) node {
	least := cmp.Or(f.Literal("min"), any(0))
	span := strings.Trim(rollout.Formats()["span"].Pattern.String(), "^$")
	s := either(node{"type": "integer", "minimum": least}, pattern(`^([0-9]+|`+span+`)$`))
	if m.args {
		s["anyOf"] = append(s["anyOf"].([]node), pattern(argument), node{"const": ""})
	}
	return s
}

const argument = `\{\{\s*args\.`
