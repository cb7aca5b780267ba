package traffic

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// path is a subset of JSONPath (RFC 9535): fields, indexes, [*] and filters by equality. A leading $ is optional.
//
//	spec.routes[0].weight                     fields and elements, from 0
//	metadata.annotations['example.com/weight']  a field with dots in its name
//	spec.routes[?(@.name=="main")].weight     the elements whose name is main
//	spec.routes[*].weight                     all elements
type path []pathStep

type pathStep struct {
	text  string
	field string
	picks func(i int, element any) bool // selects list elements; nil for a field
}

type place struct {
	value any
	path  string
}

func parsePath(s string) (p path, err error) {
	rest := strings.TrimPrefix(s, "$")
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	for rest != "" {
		step, n, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("%w, at %q", err, rest)
		}
		step.text, rest = rest[:n], rest[n:]
		p = append(p, step)
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("is empty")
	}
	return p, nil
}

func parseStep(s string) (pathStep, int, error) {
	if s[0] == '.' {
		end := strings.IndexAny(s[1:], ".[") + 1
		if end == 0 {
			end = len(s)
		}
		field := s[1:end]
		if field == "" || strings.ContainsAny(field, "]'\"*? ") {
			return pathStep{}, 0, fmt.Errorf("a dot must be followed by a name; write names with special characters as ['name']")
		}
		return pathStep{field: field}, end, nil
	}
	if s[0] != '[' {
		return pathStep{}, 0, fmt.Errorf("a dot or a bracket belongs here")
	}
	bracket := bracketForm.FindStringSubmatch(s)
	if bracket == nil {
		return pathStep{}, 0, fmt.Errorf("the bracket is not closed")
	}
	inner, end := bracket[1], len(bracket[0])
	if name := quotedForm.FindStringSubmatch(inner); name != nil {
		return pathStep{field: name[1] + name[2]}, end, nil
	}
	if inner == "*" {
		return pathStep{picks: func(int, any) bool { return true }}, end, nil
	}
	if i, err := strconv.Atoi(inner); err == nil && i >= 0 {
		return pathStep{picks: func(at int, _ any) bool { return at == i }}, end, nil
	}
	if !strings.HasPrefix(inner, "?(@.") || !strings.HasSuffix(inner, ")") {
		return pathStep{}, 0, fmt.Errorf(`brackets take 'name', a number from 0, * or ?(@.field=="value")`)
	}
	if f := filterForm.FindStringSubmatch(inner); f != nil {
		fields, want := strings.Split(f[1], "."), f[2]+f[3]+f[4]
		return pathStep{picks: func(_ int, element any) bool { return hasText(element, fields, want) }}, end, nil
	}
	return pathStep{}, 0, fmt.Errorf(`a condition is written as ?(@.field=="value")`)
}

var (
	bracketForm = regexp.MustCompile(`^\[((?:'[^']*'|"[^"]*"|[^'"\]])*)\]`)
	quotedForm  = regexp.MustCompile(`^(?:'([^']*)'|"([^"]*)")$`)
	filterForm  = regexp.MustCompile(`^\?\(@\.\s*([^.='"\s]+(?:\.[^.='"\s]+)*)\s*==\s*` +
		`(?:'([^']*)'|"([^"]*)"|([^'"\s](?:[^'"]*[^'"\s])?))\s*\)$`)
)

func (p path) find(root any) ([]place, error) {
	places := []place{{value: root}}
	for i, step := range p {
		var next []place
		for _, from := range places {
			next = append(next, step.from(from)...)
		}
		if len(next) == 0 {
			return nil, fmt.Errorf("%s does not exist: %s", p[:i+1], step.nothing(p[:i], places))
		}
		places = next
	}
	return places, nil
}

// String returns the path's text without the first dot.
func (p path) String() string {
	var s strings.Builder
	for _, step := range p {
		s.WriteString(step.text)
	}
	text := s.String()
	if strings.HasPrefix(text, ".$") { // otherwise, parsePath would drop the $
		return text
	}
	return strings.TrimPrefix(text, ".")
}

func (s pathStep) from(at place) (found []place) {
	if s.picks == nil {
		value, ok := mapping(at.value)[s.field]
		if !ok {
			return nil
		}
		return []place{{value, at.path + s.text}}
	}
	for i, value := range list(at.value) {
		if s.picks(i, value) {
			found = append(found, place{value, fmt.Sprintf("%s[%d]", at.path, i)})
		}
	}
	return found
}

// hasText reports whether a nested field's value has the wanted text.
func hasText(value any, fields []string, want string) bool {
	for _, field := range fields {
		next, ok := mapping(value)[field]
		if !ok {
			return false
		}
		value = next
	}
	return plain(value) == want
}

func plain(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case bool, int64, int:
		return fmt.Sprint(value)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

func (s pathStep) nothing(before path, places []place) string {
	where := "the object"
	if len(before) > 0 {
		where = before.String()
	}
	length := 0
	for _, at := range places {
		switch at.value.(type) {
		case map[string]any:
			if s.picks == nil {
				return fmt.Sprintf("%s has no field %s", where, s.field)
			}
			return where + " is a mapping, not a list"
		case []any:
			if s.picks == nil {
				return where + " is a list, not a mapping"
			}
			length = max(length, len(list(at.value)))
		default:
			return where + " is a single value without fields or elements"
		}
	}
	if strings.HasPrefix(s.text, "[?") {
		return fmt.Sprintf("none of the %d elements of %s matches the filter", length, where)
	}
	return fmt.Sprintf("the length of %s is %d", where, length)
}

func (p path) parents(root any) (mappings []place, field pathStep, err error) {
	last := p[len(p)-1]
	if last.picks != nil {
		return nil, last, fmt.Errorf("ends in %s and not in a field", last.text)
	}
	places, err := p[:len(p)-1].find(root)
	if err != nil {
		return nil, last, err
	}
	for _, at := range places {
		if _, ok := at.value.(map[string]any); !ok {
			return nil, last, fmt.Errorf("%s is not a mapping", p[:len(p)-1])
		}
	}
	return places, last, nil
}
