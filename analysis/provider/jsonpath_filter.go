package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// children are the elements of a list, or the values of a mapping by their
// keys, in order.
func children(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		var all []any
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, v[key])
		}
		return all
	default:
		return nil
	}
}

// below are a value and all values in it. What follows .. is looked for in each
// of them, so the mappings and lists are enough.
func below(v any) []any {
	all := []any{v}
	for _, child := range children(v) {
		all = append(all, below(child)...)
	}
	return all
}

// filterStep keeps the elements of a list for which @.a.b == value holds, or
// that have an @.a.b at all.
func filterStep(text string) (jsonStep, error) {
	left, operator, right := text, "", ""
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if l, r, ok := strings.Cut(text, op); ok {
			left, operator, right = strings.TrimSpace(l), op, strings.TrimSpace(r)
			break
		}
	}
	left = strings.TrimSpace(left)
	if !strings.HasPrefix(left, "@") {
		return jsonStep{}, fmt.Errorf("has the filter %q, which does not begin with @", text)
	}
	path, err := parseJSONPath("{" + left + "}")
	if err != nil {
		return jsonStep{}, err
	}
	want, err := literal(right)
	if operator != "" && err != nil {
		return jsonStep{}, err
	}
	return jsonStep{text: "[?(" + text + ")]", from: func(v any) []any {
		var out []any
		for _, element := range children(v) {
			got, err := path.find(element)
			if err == nil && len(got) > 0 && (operator == "" || compares(got[0], operator, want)) {
				out = append(out, element)
			}
		}
		return out
	}}, nil
}

// literal reads a number, a text in quotes, true, false or null.
func literal(text string) (any, error) {
	if s, ok := unquote(text); ok {
		return s, nil
	}
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	case "":
		return nil, errors.New("compares with nothing")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("compares with %s, which is not in quotes", text)
	}
	return f, nil
}

func compares(got any, operator string, want any) bool {
	less, equal := false, got == want
	switch g := got.(type) {
	case float64:
		w, ok := want.(float64)
		if !ok {
			return operator == "!="
		}
		less, equal = g < w, g == w
	case string:
		w, ok := want.(string)
		if !ok {
			return operator == "!="
		}
		less, equal = g < w, g == w
	case []any, map[string]any:
		return operator == "!="
	}
	switch operator {
	case "==":
		return equal
	case "!=":
		return !equal
	case "<":
		return less
	case "<=":
		return less || equal
	case ">":
		return !less && !equal
	default:
		return !less
	}
}
