package render

import (
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// maxMessage bounds what is left of kustomize's errors, which quote whole
// objects.
const maxMessage = 400

// The parts of kustomize's errors that say how it came to the cause: one for
// each level of bases, and for each path that it tried as a file and then as a
// folder. Tables of regular expressions, because kustomize's errors have no
// types at this depth (api/internal/target/kusttarget.go).
var (
	rootPart = regexp.MustCompile(`(?:recursed accumulation of path|couldn't make target for path|` +
		`recursed merging from path) '([^']*)': `)
	folderPart = regexp.MustCompile(`accumulation err='accumulating resources from '[^']*': ` +
		`'[^']*' must resolve to a file': `)
	filePart  = regexp.MustCompile(`accumulation err='(.*)': must build at directory: '[^']*': file is not directory`)
	noisePart = regexp.MustCompile(`accumulating (?:resources|components): |merging from generator &\{[^}]*\}: |` +
		`trouble configuring builtin \w+ with config: \x60.*\x60: |error converting YAML to JSON: `)
	secretPart = regexp.MustCompile(`literal sources \[.*\]: invalid literal source .*, expected key=value`)
	patchPart  = regexp.MustCompile(`(unable to parse SM or JSON patch) from \[.*\]`)
	namedPart  = regexp.MustCompile(`(?:accumulating|merging) resources from '([^']*)': `)
	objectPart = regexp.MustCompile(`in object \{\{([^{}]*)\} \{\{([^{}]*)\}.*$`)
	// The verb differs from process to process, on purpose.
	structPart  = regexp.MustCompile(`json: (?:cannot|unable to) unmarshal (.*) into Go struct \{.*\}`)
	addressPart = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	badKeyPart  = regexp.MustCompile(`(?:map\[string\]interface \{\}\{.*"kind":"([^"]*)".*: )?` +
		`json: unsupported type: map\[interface \{\}\]interface \{\}.*$`)
)

// reduce makes one line of kustomize's error: the file, and the cause without
// the chain of attempts that led to it. It holds nothing of this machine or
// this run, because it becomes part of the state.
func reduce(fs *treeFS, file string, err error) error {
	var invalid *rollout.InvalidError
	if errors.As(err, &invalid) {
		return invalid
	}
	text := rollout.OneLine(unquote(err.Error()))
	text = strings.ReplaceAll(text, mount+"/", "")
	text = strings.ReplaceAll(text, mount, ".")
	if roots := rootPart.FindAllStringSubmatch(text, -1); len(roots) > 0 {
		file = fs.kustomizationIn(roots[len(roots)-1][1], file)
	}
	text = rootPart.ReplaceAllString(text, "")
	text = folderPart.ReplaceAllString(text, "")
	text = filePart.ReplaceAllString(text, "$1")
	text = noisePart.ReplaceAllString(text, "")
	text = secretPart.ReplaceAllString(text, "a literal is not key=value") // it may be a password
	text = patchPart.ReplaceAllString(text, "$1")                          // the same
	text = namedPart.ReplaceAllString(text, "$1: ")
	text = objectPart.ReplaceAllString(text, "in object $1 $2")
	text = badKeyPart.ReplaceAllString(text,
		"$1 a key is not a string once it is printed: quote it, or rename it if it is quoted (null, on, n and the like)")
	text = structPart.ReplaceAllString(text, "a $1 is no schema")
	text = addressPart.ReplaceAllString(text, "…")
	if text = rollout.OneLine(text); len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " …"
	}
	return &rollout.InvalidError{File: file, Msg: "kustomize: " + text, Fix: fixOf(text)}
}

// fixes say what to do about an error of kustomize's that has the text.
var fixes = []struct{ text, fix string }{
	{"kustomization.yaml is empty", "list its manifests under resources; a Component is listed under components"},
	{"unable to parse SM or JSON patch",
		"write a part of an object, with apiVersion, kind and metadata.name, or a list of op, path and value"},
	{"replace operation does not apply", "use op: add for what is not there yet"},
	{"a literal is not key=value", "write key=value"},
	{"cannot merge or replace", "leave behavior out, or write behavior: create"},
	{"no resource matches strategic merge patch",
		"name the object as its file does, with kind, name and namespace, before any prefix"},
	{"missing Resource metadata", noObject},
	{"missing kind in object", noObject},
	{"missing metadata.name in object", noObject},
	{"already registered id", "list the object once; what is to differ from a base belongs in a patch"},
}

const noObject = "give it an apiVersion, a kind and a metadata.name, or take the file out of resources"

func fixOf(text string) string {
	for _, f := range fixes {
		if strings.Contains(text, f.text) {
			return f.fix
		}
	}
	return ""
}

// unquote opens the errors of components, one quoted inside the other.
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

// kustomizationIn returns the kustomization file of a folder, if it was read.
func (f *treeFS) kustomizationIn(dir, otherwise string) string {
	for _, name := range KustomizationNames {
		if p := path.Join(dir, name); f.blobs[p] != nil {
			return p
		}
	}
	return otherwise
}
