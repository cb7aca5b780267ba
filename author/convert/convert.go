// Package convert writes the newest apiVersion into gitrollout's documents.
package convert

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// ErrDecision is about a Promotion: its bytes identify the decision, so an edit would repeat the decision.
var ErrDecision = errors.New("records a decision; the next decision replaces the file")

// written lists the kinds whose bytes count.
var written = []string{"Promotion", "RolloutState", "ClusterState", "Notified"}

var group, old, _ = strings.Cut(rollout.AlphaVersion, "/")

var now = strings.TrimPrefix(rollout.APIVersion, group+"/")

// inTemplate matches a document of a chart, which is no YAML.
var inTemplate = regexp.MustCompile(`(?m)^apiVersion:[ \t]*["']?(` + regexp.QuoteMeta(rollout.AlphaVersion) + `)\b`)

// File returns a YAML file with APIVersion for AlphaVersion, also in a kustomization's patches. All other bytes stay.
// An error says why the file, or a document, stays as it is.
func File(data []byte) ([]byte, error) {
	switch {
	case !bytes.Contains(data, []byte(old)) || !bytes.Contains(data, []byte(group)):
		return data, nil
	case sops.Is(data):
		return data, errors.New("is signed by SOPS; decrypt it, convert it and encrypt it again")
	}
	f := file{text: string(data)}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return f.edited(), f.err
		case err != nil && strings.Contains(f.text, "{{"):
			f.at, f.err = nil, nil
			for _, m := range inTemplate.FindAllStringSubmatchIndex(f.text, -1) {
				f.at = append(f.at, m[2]+len(group)+1)
			}
			return f.edited(), nil
		case err != nil:
			return data, errors.New("is not valid YAML: " + rollout.OneLine(err.Error()))
		}
		for _, root := range n.Content {
			f.document(root)
		}
	}
}

type file struct {
	text string
	at   []int // offsets of the old version
	err  error
}

func (f *file) edited() []byte {
	slices.Sort(f.at)
	text := f.text
	for _, at := range slices.Backward(slices.Compact(f.at)) {
		text = text[:at] + now + text[at+len(old):]
	}
	return []byte(text)
}

func field(n *yaml.Node, name string) *yaml.Node {
	if found := yaml.NewRNode(n).Field(name); n.Kind == yaml.MappingNode && found != nil {
		return found.Value.YNode()
	}
	return &yaml.Node{}
}

func (f *file) document(n *yaml.Node) {
	version, kind := field(n, "apiVersion"), field(n, "kind").Value
	switch {
	case version.Value == rollout.AlphaVersion && slices.Contains(written, kind):
		f.err = ErrDecision
	case version.Value == rollout.AlphaVersion:
		f.replace(version, rollout.AlphaVersion)
	case kind == "Kustomization" || kind == "Component" || kind == "":
		for _, name := range []string{"patches", "patchesStrategicMerge", "patchesJson6902", "replacements"} {
			f.patches(field(n, name))
		}
	}
	for _, item := range field(n, "items").Content {
		f.document(item)
	}
}

// patches finds texts of patches, and patches' targets.
func (f *file) patches(n *yaml.Node) {
	version := field(n, "version")
	switch {
	case n.Kind == yaml.ScalarNode && strings.Contains(n.Value, rollout.AlphaVersion):
		f.replace(n, rollout.AlphaVersion)
	case field(n, "group").Value == group && version.Value == old:
		f.replace(version, old)
	}
	for _, child := range n.Content {
		f.patches(child)
	}
}

// replace finds a text, which ends with the old version, in a scalar.
func (f *file) replace(n *yaml.Node, text string) {
	start := 0
	for range n.Line - 1 {
		start += strings.IndexByte(f.text[start:], '\n') + 1
	}
	line, _, _ := strings.Cut(f.text[start:], "\n")
	start += len(string([]rune(line)[:n.Column-1]))
	for range strings.Count(n.Value, text) {
		i := strings.Index(f.text[start:], text)
		if i < 0 || n.Kind != yaml.ScalarNode || n.Anchor != "" {
			f.err = errors.New("has an apiVersion that is an anchor, an alias or split: change it by hand")
			return
		}
		start += i + len(text)
		f.at = append(f.at, start-len(old))
	}
}
