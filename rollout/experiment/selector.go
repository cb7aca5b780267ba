package experiment

import "slices"

// Matches reports whether a label selector (matchLabels, matchExpressions)
// selects labels. An empty one selects nothing here: everything is nobody's.
func Matches(selector map[string]any, labels map[string]string) bool {
	if len(keysOf(selector)) == 0 {
		return false
	}
	wanted, _ := selector["matchLabels"].(map[string]any)
	for key, v := range wanted {
		if text, ok := labels[key]; !ok || text != v {
			return false
		}
	}
	for _, e := range expressionsOf(selector) {
		if !e.matches(labels) {
			return false
		}
	}
	return true
}

// keysOf are the labels that a selector looks at.
func keysOf(selector map[string]any) []string {
	var keys []string
	wanted, _ := selector["matchLabels"].(map[string]any)
	for key := range wanted {
		keys = append(keys, key)
	}
	for _, e := range expressionsOf(selector) {
		keys = append(keys, e.key)
	}
	return keys
}

type expression struct {
	key, operator string
	values        []any
}

func expressionsOf(selector map[string]any) []expression {
	list, _ := selector["matchExpressions"].([]any)
	all := make([]expression, 0, len(list))
	for _, raw := range list {
		m, _ := raw.(map[string]any)
		var e expression
		e.key, _ = m["key"].(string)
		e.operator, _ = m["operator"].(string)
		e.values, _ = m["values"].([]any)
		all = append(all, e)
	}
	return all
}

func (e expression) matches(labels map[string]string) bool {
	text, has := labels[e.key]
	in := has && slices.Contains(e.values, any(text))
	switch e.operator {
	case "In":
		return in
	case "NotIn":
		return !in
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	default:
		return false
	}
}
