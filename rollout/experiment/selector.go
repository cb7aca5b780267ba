package experiment

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Matches reports whether a selector selects labels. Unlike in Kubernetes, an empty selector selects none.
func Matches(selector map[string]any, labels map[string]string) bool {
	return len(keysOf(selector)) > 0 && Mismatch(selector, withTexts(labels)) == ""
}

// Mismatch returns why a selector does not select a pod template's labels.
func Mismatch(selector, labels map[string]any) string {
	wanted, _ := selector["matchLabels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		switch got, has := labels[key]; {
		case !has:
			return fmt.Sprintf("%s=%v is selected, and the template has no label %s", key, wanted[key], key)
		case !reflect.DeepEqual(got, wanted[key]): // == cannot compare maps and lists
			return fmt.Sprintf("%s=%v is selected, and the template has %s=%v", key, wanted[key], key, got)
		}
	}
	for _, e := range expressionsOf(selector) {
		if why := e.mismatch(labels); why != "" {
			return why
		}
	}
	return ""
}

func keysOf(selector map[string]any) []string {
	wanted, _ := selector["matchLabels"].(map[string]any)
	inExpressions := rollout.Mapped(expressionsOf(selector), func(e expression) string { return e.key })
	return slices.AppendSeq(inExpressions, maps.Keys(wanted))
}

type expression struct {
	key, operator string
	values        []any
}

func expressionsOf(selector map[string]any) []expression {
	list, _ := selector["matchExpressions"].([]any)
	return rollout.Mapped(list, func(raw any) (e expression) {
		m, _ := raw.(map[string]any)
		e.key, _ = m["key"].(string)
		e.operator, _ = m["operator"].(string)
		e.values, _ = m["values"].([]any)
		return e
	})
}

func (e expression) mismatch(labels map[string]any) string {
	got, has := labels[e.key]
	in := has && slices.ContainsFunc(e.values, func(v any) bool { return reflect.DeepEqual(v, got) })
	matches, known := map[string]bool{"In": in, "NotIn": !in, "Exists": has, "DoesNotExist": !has}[e.operator]
	switch {
	case !known:
		return fmt.Sprintf("%v is not an operator", e.operator)
	case !matches:
		return fmt.Sprintf("%s %s %v is selected, and the template does not match it", e.key, e.operator, e.values)
	default:
		return ""
	}
}
