// Package convert writes the newest apiVersion into gitrollout's documents.
package convert

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

var (
	group, old, _ = strings.Cut(rollout.AlphaVersion, "/")
	now           = strings.TrimPrefix(rollout.APIVersion, group+"/")

	// inTemplate matches the old version in a chart's template: in a document, a list item, or a named template.
	inTemplate = regexp.MustCompile(`(?m)((?:^(?:[ \t]*- )?apiVersion:[ \t]*["']?|\bdefine [^}]*\}\}\s*)` +
		regexp.QuoteMeta(group) + `/)` + old + `\b`)

	// inPatch matches a patch's text up to the end of an apiVersion. In a JSON patch, the apiVersion is a value.
	inPatch = regexp.MustCompile(`apiVersion["']?([,\s]+["']?value["']?)?\s*:\s*["']?` +
		regexp.QuoteMeta(rollout.AlphaVersion) + `$`)

	lineBreak = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]") // as yaml.Node counts lines
)

// ErrDecision is the reason why a Promotion or a record stays. Other errors need a change by hand.
var ErrDecision = errors.New("records a decision; the next decision replaces the file")

// File replaces AlphaVersion by APIVersion in a YAML file, also in a kustomization's patches. All other bytes stay. An
// error says why a document stays as it is.
func File(data []byte) ([]byte, error) {
	made, err := converted(data)
	if !bytes.Equal(made, data) && sops.Is(data) {
		return data, errors.New("is signed by SOPS; decrypt it, convert it and encrypt it again")
	}
	return made, err
}

func converted(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte("alpha")) { // a target's version may be a pattern
		return data, nil
	}
	f, decoder := file{text: string(data)}, yaml.NewDecoder(bytes.NewReader(data))
	f.breaks = lineBreak.FindAllStringIndex(f.text, -1)
	for {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return f.edited(), f.err
		case err != nil && bytes.Contains(data, []byte("{{")):
			return inTemplate.ReplaceAll(data, []byte("${1}"+now)), nil
		case err != nil && !bytes.Contains(data, []byte(rollout.AlphaVersion)):
			return data, nil
		case err != nil:
			return data, errors.New("is not valid YAML: " + rollout.OneLine(err.Error()))
		}
		f.document(n.Content[0])
	}
}

type file struct {
	text   string
	breaks [][]int // begin and end of each line break
	at     []int   // offsets of the old version
	err    error
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
	kind := field(root, "kind").Value
	if kind == "" || kind == "Kustomization" || kind == "Component" || strings.HasPrefix(kind, "Patch") {
		for name := range strings.FieldsSeq("patch patches patchesStrategicMerge patchesJson6902 replacements transformers") {
			f.walk(field(root, name), true)
		}
	}
}

func field(n *yaml.Node, name string) *yaml.Node {
	found := yaml.NewRNode(n).Field(name)
	if found == nil {
		return &yaml.Node{}
	}
	return cmp.Or(found.Value.YNode().Alias, found.Value.YNode())
}

func (f *file) walk(n *yaml.Node, isPatch bool) {
	version, kind := field(n, "apiVersion"), field(n, "kind").Value
	switch isOld := version.Value == rollout.AlphaVersion; {
	case isOld && slices.Contains([]string{"Promotion", "RolloutState", "ClusterState", "Notified"}, kind):
		f.err = cmp.Or(f.err, ErrDecision) // its digest counts
	case isOld:
		f.replace(version, rollout.AlphaVersion)
	case field(n, "group").Value == group && field(n, "version").Value == old:
		f.replace(field(n, "version"), old)
	case field(n, "path").Value == "/apiVersion" && field(n, "value").Value == rollout.AlphaVersion: // in a JSON patch
		f.replace(field(n, "value"), rollout.AlphaVersion)
	case (isPatch || kind != "") && selectsOld(n):
		f.err = errors.New("has a target without a group, or with a pattern: give the group and version, and convert again")
	case isPatch && n.Kind == yaml.ScalarNode:
		f.replace(n, rollout.AlphaVersion)
	}
	for _, child := range n.Content {
		f.walk(child, isPatch)
	}
}

// selectsOld reports whether a target would lose documents. Its fields are regular expressions. Without a group, the
// documents may also be argoproj.io's.
func selectsOld(n *yaml.Node) bool {
	matches := func(name, text string) bool {
		pattern := field(n, name).Value
		is, err := regexp.MatchString("^(?:"+pattern+")$", text)
		return pattern == "" || is || err != nil
	}
	return !matches("version", now) && matches("version", old) && matches("group", group) && (matches("kind", "Rollout") ||
		matches("kind", "AnalysisTemplate") || matches("kind", "ClusterAnalysisTemplate"))
}

// replace notes where a scalar has the text, as the whole scalar or as an apiVersion in a patch.
func (f *file) replace(n *yaml.Node, text string) {
	start, isLong := f.offset(n), n.Value != text || n.Style&(isBlock|yaml.TaggedStyle) != 0
	for end := 0; strings.Contains(n.Value[end:], text); {
		end += strings.Index(n.Value[end:], text) + len(text)
		i := strings.Index(f.text[start:], text)
		if i < 0 || i > 2 && !isLong || n.Kind != yaml.ScalarNode || n.Anchor != "" { // 2: a quote and a byte order mark
			f.err = errors.New("has an apiVersion that is an anchor, an alias or split: change it by hand")
			return
		}
		start += i + len(text)
		if n.Value == text || inPatch.MatchString(n.Value[:end]) {
			f.at = append(f.at, start-len(old))
		}
	}
}

var isBlock = yaml.LiteralStyle | yaml.FoldedStyle

func (f *file) offset(n *yaml.Node) (at int) {
	lines, columns := n.Line-1, n.Column-1
	if n.Style&isBlock != 0 {
		lines, columns = n.Line, 0 // after a comment beside "|"
	}
	if lines = min(lines, len(f.breaks)); lines > 0 {
		at = f.breaks[lines-1][1]
	}
	for range columns {
		_, size := utf8.DecodeRuneInString(f.text[at:])
		at += size
	}
	return at
}
