package render

import (
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// maxMessage is in bytes. Kustomize's errors quote whole objects.
const maxMessage = 400

// rootPart matches a folder in kustomize's error, one for each level of bases.
var rootPart = regexp.MustCompile(`(?:recursed accumulation of path|couldn't make target for path|` +
	`recursed merging from path) '([^']*)': `)

// reductions shorten kustomize's errors, which have no types (api/internal/target/kusttarget.go), and report each path
// as file and as folder.
var reductions = []struct {
	part *regexp.Regexp
	left string
}{
	{rootPart, ""},
	{regexp.MustCompile(`accumulation err='accumulating resources from '[^']*': ` +
		`'[^']*' must resolve to a file': `), ""},
	{regexp.MustCompile(`accumulation err='(.*)': must build at directory: '[^']*': file is not directory`), "$1"},
	{regexp.MustCompile(`accumulating (?:resources|components): |merging from generator &\{[^}]*\}: |` +
		`trouble configuring builtin \w+ with config: \x60.*\x60: |error converting YAML to JSON: `), ""},
	// Both may contain a password.
	{regexp.MustCompile(`literal sources \[.*\]: invalid literal source .*, expected key=value`),
		"a literal is not key=value"},
	{regexp.MustCompile(`(unable to parse SM or JSON patch) from \[.*\]`), "$1"},
	{regexp.MustCompile(`(?:accumulating|merging) resources from '([^']*)': `), "$1: "},
	{regexp.MustCompile(`in object \{\{([^{}]*)\} \{\{([^{}]*)\}.*$`), "in object $1 $2"},
	{regexp.MustCompile(`(?:map\[string\]interface \{\}\{.*"kind":"([^"]*)".*: )?` +
		`json: unsupported type: map\[interface \{\}\]interface \{\}.*$`),
		"$1 a key is not a string in kustomize's output: quote the key; if it is quoted already (null, on, n and the like), rename it"},
	// encoding/json varies the verb between processes.
	{regexp.MustCompile(`json: (?:cannot|unable to) unmarshal (?:JSON )?(.*) into Go struct \{.*\}`),
		"a schema must be a JSON object, not an $1"},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "…"},
}

// reduce shortens kustomize's error to one line, equal on all machines, because it is recorded in Git.
func reduce(fs *treeFS, file string, err error) error {
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) {
		return invalid
	}
	text := rollout.OneLine(unquote(err.Error()))
	text = strings.ReplaceAll(text, mount+"/", "")
	text = strings.ReplaceAll(text, mount, ".")
	if roots := rootPart.FindAllStringSubmatch(text, -1); len(roots) > 0 {
		file = fs.kustomizationIn(roots[len(roots)-1][1], file)
	}
	for _, r := range reductions {
		text = r.part.ReplaceAllString(text, r.left)
	}
	if text = rollout.OneLine(text); len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " …"
	}
	known, _ := rollout.Find(fixes, func(f fix) bool { return strings.Contains(text, f.text) })
	return &rollout.InvalidError{File: file, Msg: "kustomize: " + text, Fix: known.fix}
}

type fix struct{ text, fix string }

var fixes = []fix{
	{"kustomization.yaml is empty", "list the manifests under resources, or a Component under components"},
	{"unable to parse SM or JSON patch",
		"write a part of an object, with apiVersion, kind and metadata.name, or a list of op, path and value"},
	{"replace operation does not apply", "use op: add for a path that does not exist yet"},
	{"a literal is not key=value", "write key=value"},
	{"cannot merge or replace", "leave behavior out, or write behavior: create"},
	{"no resource matches strategic merge patch",
		"use the kind, name and namespace of the object's file, without a prefix that kustomize adds"},
	{"missing Resource metadata", noObject},
	{"missing kind in object", noObject},
	{"missing metadata.name in object", noObject},
	{"already registered id", "list the object once; put differences from a base into a patch"},
}

const noObject = "add apiVersion, kind and metadata.name to the object, or remove its file from resources"

func unquote(text string) string {
	for range maxRoots {
		before, quoted, found := strings.Cut(text, `accumulateDirectory: "`)
		if !found {
			break
		}
		inner, err := strconv.Unquote(`"` + quoted)
		if err != nil {
			break
		}
		text = before + inner
	}
	return text
}

func (f *treeFS) kustomizationIn(dir, otherwise string) string {
	for _, name := range KustomizationNames {
		if p := path.Join(dir, name); f.blobs[p] != nil {
			return p
		}
	}
	return otherwise
}
