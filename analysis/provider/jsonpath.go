package provider

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// A path has kubectl's syntax (https://kubernetes.io/docs/reference/kubectl/jsonpath/), as in Argo Rollouts. Text
// around the path, several paths, functions and "range" are refused, because a metric needs one value.
const jsonPathForm = "write it as in {$.data.value}"

// These limits bound a path's cost: ".." visits all values, and unions multiply the visits.
const (
	maxPath  = 1000 // bytes
	maxUnion = 16   // product of all unions' lengths
	maxDepth = 100  // levels of a response for ".."
)

type pathCost struct {
	recursive, union int
	inFilter         bool
}

func parseJSONPath(text string) (path *jsonpath.JSONPath, cost pathCost, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("cannot be read")
		}
	}()
	trimmed := strings.TrimSpace(text)
	switch {
	case !strings.HasPrefix(trimmed, "{") || !strings.HasSuffix(trimmed, "}"):
		return nil, cost, errors.New("is not in braces")
	case len(trimmed) > maxPath:
		return nil, cost, fmt.Errorf("is longer than %d bytes", maxPath)
	}
	parser := jsonpath.NewParser("")
	if err := parser.Parse(trimmed); err != nil {
		return nil, cost, fmt.Errorf("cannot be read: %w", err)
	}
	if len(parser.Root.Nodes) != 1 {
		return nil, cost, errors.New("has more than one expression")
	}
	cost.union = 1
	if err := cost.add(parser.Root); err != nil {
		return nil, cost, err
	}
	path = jsonpath.New("")
	return path, cost, path.Parse(trimmed)
}

func (c *pathCost) add(node jsonpath.Node) error {
	var below []*jsonpath.ListNode
	switch node := node.(type) {
	case *jsonpath.ListNode:
		for _, n := range node.Nodes {
			if err := c.add(n); err != nil {
				return err
			}
		}
	case *jsonpath.RecursiveNode:
		c.recursive++
	case *jsonpath.UnionNode:
		below, c.union = node.Nodes, c.union*len(node.Nodes)
	case *jsonpath.FilterNode:
		if c.inFilter {
			return errors.New("has a filter within a filter")
		}
		c.inFilter = true
		defer func() { c.inFilter = false }()
		below = []*jsonpath.ListNode{node.Left, node.Right}
	case *jsonpath.IdentifierNode:
		return fmt.Errorf("has %q, which is neither a field nor in quotes", node.Name)
	}
	for _, list := range below {
		if err := c.add(list); err != nil {
			return err
		}
	}
	switch {
	case c.recursive > 1:
		return errors.New("has more than one ..")
	case c.union > maxUnion:
		return fmt.Errorf("names more than %d members in brackets", maxUnion)
	}
	return nil
}

func checkJSONPath(field, text string) error {
	if _, _, err := parseJSONPath(text); err != nil {
		return wrong(field, jsonPathForm, "%q %s", text, err)
	}
	return nil
}

// valueAt returns a path's first value, as Argo Rollouts does, or nil.
func valueAt(text string, v any) (value any, err error) {
	path, cost, err := parseJSONPath(text)
	if err != nil {
		return nil, fmt.Errorf("jsonPath %q %w; %s", text, err, jsonPathForm)
	}
	if cost.recursive > 0 && deeper(v, maxDepth) {
		return nil, fmt.Errorf("jsonPath %s: the answer is nested too deep for ..; write the path without it", text)
	}
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("jsonPath %s does not fit the answer", text)
		}
	}()
	found, err := path.FindResults(v)
	switch {
	case err != nil && strings.Contains(err.Error(), "incompatible types"):
		return nil, fmt.Errorf("jsonPath %s: the filter compares values of different types; "+
			"a number is written as in 2.0", text)
	case err != nil:
		return nil, fmt.Errorf("jsonPath %s: %w in the answer", text, err)
	case len(found) == 0 || len(found[0]) == 0 || found[0][0] == reflect.Value{}:
		return nil, nil
	}
	return found[0][0].Interface(), nil
}

func deeper(v any, levels int) bool {
	if levels == 0 {
		return true
	}
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return deeper(e, levels-1) })
	case map[string]any:
		return deeper(slices.Collect(maps.Values(v)), levels)
	}
	return false
}
