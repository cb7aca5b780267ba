package render

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// These constants limit one build. Kustomize expands aliases, compares each object with every other, and recurses
// without limits.
const (
	maxObjects = 2000       // 8 seconds; 4,000 objects take 50 seconds
	maxWork    = 12_000_000 // each kustomization adds its number of objects, squared
	maxNodes   = 1_000_000  // YAML values, with aliases expanded
	maxCopies  = 16         // in JSON patches; each can double an object
	maxDepth   = 200        // the deepest CRD schemas have about 60 levels
	maxOutput  = 16 << 20   // bytes as JSON
)

func tooLarge(file string) error {
	return &rollout.InvalidError{File: file, Msg: fmt.Sprintf("renders to more than %d bytes", maxOutput),
		Fix: "split the app"}
}

type shape struct {
	objects int
	nodes   int
	copies  int
}

func (s *shape) add(more shape) {
	s.objects += more.objects
	s.nodes += more.nodes
	s.copies += more.copies
}

// sound refuses YAML that kustomize could not print as JSON in limited memory and time. Values such as .nan make
// kustomize call log.Fatal. field is "" for a whole file.
func (in *inspector) sound(file, field string, content []byte) (err error) {
	key := file + "\x00" + field
	known, ok := in.checked[key]
	if !ok {
		if known, err = measure(file, field, content); err != nil {
			return err
		}
		in.checked[key] = known
	}
	in.total.add(known)
	for _, bound := range []struct {
		has, most int
		what, fix string
	}{
		{in.total.copies, maxCopies, "copy operations of JSON patches", "write out the copied values"},
		{in.total.objects, maxObjects, "objects", "split the app"},
		{in.total.nodes, maxNodes, "YAML values with aliases expanded", "split the app"},
	} {
		if bound.has > bound.most {
			return rollout.Invalidf(file, field, "brings the build to more than %d %s", bound.most, bound.what).
				WithFix("%s", bound.fix)
		}
	}
	return nil
}

// separator splits documents as kustomize does (kyaml/kio).
var separator = regexp.MustCompile(`\n---.*\n`)

func splitDocuments(text string) (docs []string) {
	at := 0
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for _, loc := range separator.FindAllStringIndex(text, -1) {
		docs = append(docs, text[at:loc[0]+1])
		at = loc[1]
	}
	return append(docs, text[at:])
}

func measure(file, field string, content []byte) (total shape, err error) {
	line := 0
	for _, text := range splitDocuments(string(content)) {
		var doc kyaml.Node
		err := kyaml.NewDecoder(strings.NewReader(text)).Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
		case err != nil:
			return total, rollout.Invalidf(file, field, "is not valid YAML: %s", shiftLine(rollout.YAMLText(err.Error()), line))
		default:
			m := &meter{expanded: map[*kyaml.Node]int{}}
			nodes, problem := m.count(&doc, 0)
			if problem != "" {
				return total, rollout.Invalidf(file, field, "line %d: %s", line+m.line, problem)
			}
			total.add(shape{objects: objects(&doc), nodes: nodes, copies: copies(&doc)})
		}
		line += strings.Count(text, "\n") + 1
	}
	return total, nil
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

func shiftLine(text string, by int) string {
	if !lineNumber.MatchString(text) { // the parser omits the line number if it is 1
		text = "line 1: " + strings.TrimPrefix(text, "yaml: ")
	}
	return lineNumber.ReplaceAllStringFunc(strings.TrimPrefix(text, "yaml: "), func(s string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(s, "line "))
		return fmt.Sprintf("line %d", n+by)
	})
}

// meter counts YAML values, including the values of aliases. The map holds the count of each anchor, or -1 while the
// anchor's values are counted.
type meter struct {
	expanded map[*kyaml.Node]int
	line     int
}

func (m *meter) count(n *kyaml.Node, depth int) (int, string) {
	m.line = n.Line
	if depth > maxDepth {
		return 0, fmt.Sprintf("is nested more than %d deep", maxDepth)
	}
	if n.Kind == kyaml.AliasNode {
		switch nodes, known := m.expanded[n.Alias]; {
		case !known:
			return m.count(n.Alias, depth)
		case nodes < 0:
			return 0, fmt.Sprintf("the anchor %s contains itself", n.Value)
		default:
			return nodes, ""
		}
	}
	if number := strings.ToLower(strings.TrimLeft(n.Value, "+-")); n.Kind == kyaml.ScalarNode &&
		n.ShortTag() == "!!float" && (number == ".inf" || number == ".nan") {
		return 0, fmt.Sprintf("%s is a number that JSON and Kubernetes do not have", n.Value)
	}
	if n.Anchor != "" {
		m.expanded[n] = -1
	}
	if n.Kind == kyaml.MappingNode {
		if line, problem := checkKeys(n); problem != "" {
			m.line = line
			return 0, problem
		}
	}
	total := 1
	for _, child := range n.Content {
		nodes, problem := m.count(child, depth+1)
		if problem != "" {
			return 0, problem
		}
		if total += nodes; total > maxNodes {
			m.line = n.Line
			return 0, fmt.Sprintf("expands to more than %d YAML values", maxNodes)
		}
	}
	if n.Anchor != "" {
		m.expanded[n] = total
	}
	return total, ""
}

const isTwice = " is listed twice"

// checkKeys refuses duplicate keys and keys that are not strings, because kustomize's error would not name the file.
func checkKeys(mapping *kyaml.Node) (line int, problem string) {
	seen := make(map[string]bool, len(mapping.Content)/2)
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		line = key.Line
		if key.Kind == kyaml.AliasNode {
			key = key.Alias
		}
		switch tag := key.ShortTag(); {
		case key.Kind != kyaml.ScalarNode:
			return line, "a key is not a string"
		case tag == "!!merge":
			continue
		case tag != "!!str":
			return line, fmt.Sprintf("the key %s is not a string: quote it", key.Value)
		case seen[key.Value]:
			return line, "the key " + key.Value + isTwice
		}
		seen[key.Value] = true
	}
	return 0, ""
}

func (in *inspector) measured(file, text string) (string, shape, error) {
	total, err := measure(file, "", []byte(text))
	var object any
	if err == nil || !strings.HasSuffix(err.Error(), isTwice) || yaml.Unmarshal([]byte(text), &object) != nil {
		return text, total, err
	}
	in.warn("%v: the last value counts, as in Helm", err)
	last, _ := yaml.Marshal(object)
	total, err = measure(file, "", last)
	return string(last), total, err
}

func objects(doc *kyaml.Node) int {
	if items := kyaml.NewRNode(doc).Field("items"); items != nil && items.Value.YNode().Kind == kyaml.SequenceNode {
		return 1 + len(items.Value.Content())
	}
	return 1
}

func copies(doc *kyaml.Node) (n int) {
	operations, _ := kyaml.NewRNode(doc).Elements()
	for _, operation := range operations {
		if op := operation.Field("op"); op != nil && op.Value.YNode().Value == "copy" {
			n++
		}
	}
	return n
}
