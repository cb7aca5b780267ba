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

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

var (
	group, old, _ = strings.Cut(rollout.AlphaVersion, "/")
	now           = strings.TrimPrefix(rollout.APIVersion, group+"/")

	// inTemplate matches the old version in a chart's template: in a line with apiVersion, or in a named template.
	// inText matches only lines that no block scalar can contain. hasText matches a block scalar's start, and isLeft
	// matches a remaining old version.
	inTemplate, inText = template(`[ \t]*`), template("")
	hasText            = regexp.MustCompile(`(?m)[|>][-+1-9]*[ \t]*(?:#.*)?\r?$`)
	isLeft             = regexp.MustCompile(`(?m)^[^#*\n]*apiVersion[^#\n]*` + regexp.QuoteMeta(rollout.AlphaVersion))

	// texts matches names of fields, and paths of JSON patches, below which an apiVersion is only the user's text.
	texts = regexp.MustCompile(`(^|/)(data|stringData|annotations|commonAnnotations|labels|commonLabels|pairs)(/|$)`)

	lineBreak = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]") // as yaml.Node counts lines
)

// ErrDecision is File's error for a Promotion or record. After any other error, users must edit the file.
var ErrDecision = errors.New("records a decision; the next decision replaces the file")

var errByHand = errors.New("has an apiVersion with an anchor, alias or line break, or in a text: change it by hand")

func template(indent string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)((?:^\x{FEFF}?(?:\{\{[^}\n]*\}\})*` + indent + `(?:- )?["']?apiVersion["']?:[^#\n]*?|` +
		`\bdefine [^}]*\}\}\s*)` + regexp.QuoteMeta(group) + `/)` + old + `\b`)
}

// File replaces AlphaVersion by APIVersion in a YAML file, also in a kustomization's patches. All other bytes stay. An
// error says why a document stays unchanged.
func File(data []byte) ([]byte, error) {
	made, err := converted(data)
	if !bytes.Equal(made, data) && sops.Is(data) {
		return data, errors.New("is signed by SOPS; decrypt it, convert it and encrypt it again")
	}
	return made, err
}

func converted(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte("alpha")) { // a target's version may be a pattern for AlphaVersion
		return data, nil
	}
	f, decoder := file{text: string(data)}, yaml.NewDecoder(bytes.NewReader(data))
	f.breaks = slices.Concat([][]int{{0, 0}}, lineBreak.FindAllStringIndex(f.text, -1), [][]int{{len(data), len(data)}})
	for {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			made := f.edited() // may set f.err
			return made, f.err
		case err != nil && bytes.Contains(data, []byte("{{")):
			return inChart(data)
		case err != nil && !bytes.Contains(data, []byte(rollout.AlphaVersion)):
			return data, nil
		case err != nil:
			return data, errors.New("is not valid YAML: " + rollout.YAMLText(err.Error()))
		}
		f.document(n.Content[0])
		f.want = append(f.want, &n)
	}
}

func inChart(data []byte) ([]byte, error) {
	lines := inTemplate
	if hasText.Match(data) {
		lines = inText
	}
	made := lines.ReplaceAll(data, []byte("${1}"+now))
	if isLeft.Match(made) {
		return made, errByHand
	}
	return made, nil
}

type file struct {
	text    string
	want    []*yaml.Node // documents
	breaks  [][]int      // begin and end of each line break, between the text's start and end
	line    int
	columns []int // offsets of the line's characters and end
	at      []int // offsets of the old version
	err     error
}

// edited returns the text with the new versions. If another scalar would change, edited returns the old text and sets
// f.err. An escaped version can cause this.
func (f *file) edited() []byte {
	if len(f.at) == 0 {
		return []byte(f.text)
	}
	slices.Sort(f.at)
	made, end := make([]byte, 0, len(f.text)), 0
	for _, at := range slices.Compact(f.at) { // after an escaped version, an offset can occur twice
		made, end = append(append(made, f.text[end:at]...), now...), at+len(old)
	}
	made = append(made, f.text[end:]...)
	decoder := yaml.NewDecoder(bytes.NewReader(made))
	for _, want := range f.want {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil || !isSame(&n, want) {
			f.err = errByHand
			return []byte(f.text)
		}
	}
	return made
}

func isSame(a, b *yaml.Node) bool {
	return a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, isSame)
}

func (f *file) document(root *yaml.Node) {
	f.walk(root, false)
	kind := field(root, "kind").Value
	if kind == "" || kind == "Kustomization" || kind == "Component" || strings.HasPrefix(kind, "Patch") {
		const fields = "patch patches patchesStrategicMerge patchesJson6902 jsonOp replacements transformers"
		for name := range strings.FieldsSeq(fields) {
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
	if field(n, "op").Value != "" && texts.MatchString(field(n, "path").Value) {
		return // a JSON patch of texts
	}
	switch isOld := version.Value == rollout.AlphaVersion; {
	case isOld && slices.Contains([]string{"Promotion", "RolloutState", "ClusterState", "Notified"}, kind):
		f.err = cmp.Or(f.err, ErrDecision) // its digest counts
	case isOld:
		f.replace(version, rollout.APIVersion)
	case field(n, "group").Value == group && field(n, "version").Value == old:
		f.replace(field(n, "version"), now)
	case strings.HasSuffix(field(n, "path").Value, "/apiVersion") && field(n, "value").Value == rollout.AlphaVersion:
		f.replace(field(n, "value"), rollout.APIVersion) // in a JSON patch
	case (isPatch || kind != "") && selectsOld(n):
		f.err = errors.New("has a target without an exact group and version: write both, and convert again")
	case isPatch && n.Kind == yaml.ScalarNode:
		made, err := converted([]byte(n.Value))
		f.err = cmp.Or(f.err, err)
		f.replace(n, string(made))
	}
	for i, child := range n.Content {
		if i%2 == 0 || child.Kind != yaml.MappingNode || !texts.MatchString(n.Content[i-1].Value) {
			f.walk(child, isPatch)
		}
	}
}

// selectsOld reports whether a target matches the old version and not the new version. A target's fields are regular
// expressions. A target without a group also counts, although the target may be for argoproj.io's documents.
func selectsOld(n *yaml.Node) bool {
	matches := func(name, text string) bool {
		pattern := field(n, name).Value
		is, err := regexp.MatchString("^(?:"+pattern+")$", text)
		return pattern == "" || is || err != nil
	}
	return !matches("version", now) && matches("version", old) && matches("group", group) && (matches("kind", "Rollout") ||
		matches("kind", "AnalysisTemplate") || matches("kind", "ClusterAnalysisTemplate"))
}

// replace notes where the old version in a scalar becomes the new version.
func (f *file) replace(n *yaml.Node, made string) {
	if n.Value == made {
		return
	}
	start, rest, isNew := f.offset(n), made, false
	parts := strings.Split(n.Value, old)
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(f.text[start:], old)
		if i < 0 || n.Anchor != "" {
			f.err = errByHand
			return
		}
		start += i + len(old)
		if rest, isNew = strings.CutPrefix(rest[len(part):], now); isNew {
			f.at = append(f.at, start-len(old))
		} else {
			rest = rest[len(old):]
		}
	}
	n.Value = made
}

func (f *file) offset(n *yaml.Node) int {
	line, column := n.Line-1, n.Column-1
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line, column = n.Line, 0 // after a comment beside "|"
	}
	if line = min(line, len(f.breaks)-2); f.columns == nil || line != f.line {
		start, end := f.breaks[line][1], f.breaks[line+1][0]
		f.line, f.columns = line, f.columns[:0]
		for i := range f.text[start:end] {
			f.columns = append(f.columns, start+i)
		}
		f.columns = append(f.columns, end)
	}
	return f.columns[min(column, len(f.columns)-1)]
}
