package provider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// jsonPath finds values in an answer. It is kubectl's language
// (https://kubernetes.io/docs/reference/kubectl/jsonpath/) without text, range
// and functions: {$.data.items[0].name}, {.items[*].value}, {..value},
// {.items[?(@.name=="p99")].value}, {.items[-1:]}, {['a.b']}.
type jsonPath []jsonStep

// jsonStep leads from values to values below them. Strict steps fail where
// there is nothing: a name that is misspelt is no empty result.
type jsonStep struct {
	text   string
	strict bool
	from   func(any) []any
}

const jsonPathForm = "write it as in {$.data.value}"

func parseJSONPath(text string) (jsonPath, error) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return nil, errors.New("is not in braces")
	}
	if strings.HasPrefix(inner, "range ") || strings.Contains(inner, "}") && strings.Contains(inner, "{") {
		return nil, errors.New("has more than one expression")
	}
	p := &pathParser{rest: strings.TrimSpace(inner)}
	p.rest = strings.TrimPrefix(strings.TrimPrefix(p.rest, "$"), "@")
	for p.rest != "" {
		step, err := p.step()
		if err != nil {
			return nil, err
		}
		if step.from != nil {
			p.path = append(p.path, step)
		}
	}
	return p.path, nil
}

// find returns the values that a path leads to.
func (p jsonPath) find(v any) ([]any, error) {
	found := []any{v}
	for _, step := range p {
		var next []any
		for _, at := range found {
			next = append(next, step.from(at)...)
		}
		if step.strict && len(next) == 0 && len(found) > 0 {
			return nil, fmt.Errorf("there is no %s", step.text)
		}
		found = next
	}
	return found, nil
}

// checkJSONPath takes an empty text for the default.
func checkJSONPath(field, text string) error {
	if text == "" || hasArgument(text) {
		return nil
	}
	if _, err := parseJSONPath(text); err != nil {
		return &fieldError{Field: field, Msg: fmt.Sprintf("%q %s", text, err), Fix: jsonPathForm}
	}
	return nil
}

// valueAt returns the first value that a path leads to, which is all that Argo
// Rollouts looks at.
func valueAt(text string, v any) (any, error) {
	p, err := parseJSONPath(text)
	if err != nil {
		return nil, fmt.Errorf("jsonPath %q %w; %s", text, err, jsonPathForm)
	}
	found, err := p.find(v)
	if err != nil {
		return nil, fmt.Errorf("jsonPath %s: %w in the answer", text, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

type pathParser struct {
	rest string
	path jsonPath
}

func (p *pathParser) step() (jsonStep, error) {
	switch {
	case strings.HasPrefix(p.rest, ".."):
		p.rest = p.rest[1:]
		if strings.HasPrefix(p.rest, ".[") {
			p.rest = p.rest[1:]
		}
		return jsonStep{text: "..", from: below}, nil
	case strings.HasPrefix(p.rest, "["):
		return p.brackets()
	}
	p.rest = strings.TrimPrefix(p.rest, ".")
	if p.rest == "" {
		return jsonStep{}, nil
	}
	end := 0
	for end < len(p.rest) && !strings.ContainsRune(".[", rune(p.rest[end])) {
		if p.rest[end] == '\\' && end+1 < len(p.rest) {
			end++
		}
		end++
	}
	end = min(end, len(p.rest))
	name := p.rest[:end]
	p.rest = p.rest[end:]
	switch {
	case name == "*":
		return jsonStep{text: "*", from: children}, nil
	case name == "", strings.ContainsAny(name, " \t{}()|,]"):
		return jsonStep{}, fmt.Errorf("has a name that is none: %q", name)
	}
	return field(strings.ReplaceAll(name, `\`, "")), nil
}

// brackets reads [0], [-1], [1:3], [*], ['name'], [0,2] and [?(…)].
func (p *pathParser) brackets() (jsonStep, error) {
	end := closing(p.rest)
	if end < 0 {
		return jsonStep{}, errors.New("has a [ that is not closed")
	}
	inner := strings.TrimSpace(p.rest[1:end])
	p.rest = p.rest[end+1:]
	if filter, ok := strings.CutPrefix(inner, "?("); ok && strings.HasSuffix(filter, ")") {
		return filterStep(strings.TrimSuffix(filter, ")"))
	}
	if inner == "*" {
		return jsonStep{text: "[*]", from: children}, nil
	}
	if name, ok := unquote(inner); ok {
		return field(name), nil
	}
	if strings.Contains(inner, ":") {
		return sliceStep(inner)
	}
	return indexStep(inner)
}

// closing is where the bracket is closed that a text begins with, -1 if nowhere.
func closing(text string) int {
	quote, depth := byte(0), 0
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func indexStep(inner string) (jsonStep, error) {
	var steps []jsonStep
	for _, part := range strings.Split(inner, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return jsonStep{}, fmt.Errorf("has [%s], which is neither an index nor a name in quotes", inner)
		}
		steps = append(steps, index(n))
	}
	return jsonStep{text: "[" + inner + "]", strict: true, from: func(v any) []any {
		var all []any
		for _, s := range steps {
			all = append(all, s.from(v)...)
		}
		return all
	}}, nil
}

func unquote(text string) (string, bool) {
	if len(text) >= 2 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0] && strings.Count(text, text[:1]) == 2 {
		return text[1 : len(text)-1], true
	}
	return "", false
}

func field(name string) jsonStep {
	return jsonStep{text: name, strict: true, from: func(v any) []any {
		if m, ok := v.(map[string]any); ok {
			if value, there := m[name]; there {
				return []any{value}
			}
		}
		return nil
	}}
}

func index(n int) jsonStep {
	return jsonStep{from: func(v any) []any {
		list, _ := v.([]any)
		at := n
		if at < 0 {
			at += len(list)
		}
		if at < 0 || at >= len(list) {
			return nil
		}
		return list[at : at+1]
	}}
}

func sliceStep(inner string) (jsonStep, error) {
	parts := strings.Split(inner, ":")
	var bounds [3]*int
	for i, part := range parts {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || i > 2 || i == 2 && n < 1 {
			return jsonStep{}, fmt.Errorf("has [%s], which is no slice", inner)
		}
		bounds[i] = &n
	}
	return jsonStep{text: "[" + inner + "]", from: func(v any) []any {
		list, _ := v.([]any)
		from, to, by := 0, len(list), 1
		if bounds[0] != nil {
			from = *bounds[0]
		}
		if bounds[1] != nil {
			to = *bounds[1]
		}
		if bounds[2] != nil {
			by = *bounds[2]
		}
		if from < 0 {
			from = max(0, from+len(list))
		}
		if to < 0 {
			to += len(list)
		}
		var out []any
		for i := from; i < min(to, len(list)); i += by {
			out = append(out, list[i])
		}
		return out
	}}, nil
}
