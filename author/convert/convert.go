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

var (
	group, old, _ = strings.Cut(rollout.AlphaVersion, "/")
	now           = strings.TrimPrefix(rollout.APIVersion, group+"/")

	// inTemplate matches a document of a chart, which is no YAML.
	inTemplate = regexp.MustCompile(`(?m)^(apiVersion:[ \t]*["']?` + regexp.QuoteMeta(group) + `/)` + old + `\b`)
)

// File replaces AlphaVersion by APIVersion in a YAML file, also in a kustomization's patches. All other bytes stay. An
// error says why a document stays as it is.
func File(data []byte) ([]byte, error) {
	switch {
	case !bytes.Contains(data, []byte(old)) || !bytes.Contains(data, []byte(group)):
		return data, nil
	case sops.Is(data):
		return data, errors.New("is signed by SOPS; decrypt it, convert it and encrypt it again")
	}
	f, decoder := file{text: string(data)}, yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return f.edited(), f.err
		case err != nil && bytes.Contains(data, []byte("{{")):
			return inTemplate.ReplaceAll(data, []byte("${1}"+now)), nil
		case err != nil:
			return data, errors.New("is not valid YAML: " + rollout.OneLine(err.Error()))
		}
		f.document(n.Content[0])
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

func (f *file) document(root *yaml.Node) {
	f.walk(root, false)
	if kind := field(root, "kind").Value; kind == "" || kind == "Kustomization" || kind == "Component" {
		for _, name := range []string{"patches", "patchesStrategicMerge", "patchesJson6902"} {
			f.walk(field(root, name), true)
		}
	}
}

func field(n *yaml.Node, name string) *yaml.Node {
	if found := yaml.NewRNode(n).Field(name); found != nil {
		return found.Value.YNode()
	}
	return &yaml.Node{}
}

func (f *file) walk(n *yaml.Node, isPatch bool) {
	version, kind := field(n, "apiVersion"), field(n, "kind").Value
	switch isOld := version.Value == rollout.AlphaVersion; {
	case isOld && slices.Contains([]string{"Promotion", "RolloutState", "ClusterState", "Notified"}, kind):
		f.err = errors.New("records a decision; the next decision replaces the file") // its digest counts
	case isOld:
		f.replace(version, rollout.AlphaVersion)
	case field(n, "group").Value == group && field(n, "version").Value == old:
		f.replace(field(n, "version"), old)
	case isPatch && n.Kind == yaml.ScalarNode:
		f.replace(n, rollout.AlphaVersion)
	}
	for _, child := range n.Content {
		f.walk(child, isPatch)
	}
}

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
