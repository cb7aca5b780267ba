package render

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/render/chart"
	"gitrollout.dev/gitrollout/rollout"
)

// schema guards kustomize's global OpenAPI schema. A build with an "openapi:" field replaces the schema and runs alone.
var schema schemaGuard

type schemaGuard struct {
	mu     sync.RWMutex
	parsed bool
}

func (g *schemaGuard) shared(f func()) {
	for {
		g.mu.RLock()
		if g.parsed {
			break
		}
		g.mu.RUnlock()
		g.mu.Lock()
		if !g.parsed {
			// The parser writes maps that builds read without a lock, so the parser must run before the first build.
			openapi.ResetOpenAPI()
			openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"})
			g.parsed = true
		}
		g.mu.Unlock()
	}
	defer g.mu.RUnlock()
	f()
}

func (g *schemaGuard) alone(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	openapi.ResetOpenAPI()
	g.parsed = false
	defer openapi.ResetOpenAPI()
	f()
}

func decode(fs *treeFS, built resmap.ResMap, p *plan, v variables) ([]rollout.Object, error) {
	objects, size := make([]rollout.Object, 0, built.Size()), 0
	for _, resource := range built.Resources() {
		raw, err := resource.MarshalJSON()
		if err != nil {
			return nil, reduce(fs, p.file, fmt.Errorf("%s/%s: %w", resource.GetKind(), resource.GetName(), err))
		}
		if size += len(raw); size > maxOutput {
			return nil, tooLarge(p.file)
		}
		object, err := decodeObject(raw)
		if err != nil {
			return nil, reduce(fs, p.file, err)
		}
		var warnings []string
		if object, warnings, err = v.into(object, raw); err != nil {
			return nil, err
		}
		p.warnings = append(p.warnings, warnings...)
		objects = append(objects, object)
	}
	return objects, nil
}

func buildMap(fs *treeFS, dir string, p plan) (built resmap.ResMap, err error) {
	run := func() {
		defer func() {
			if cause := recover(); cause != nil {
				built, err = nil, fmt.Errorf("kustomize panics: %v", cause)
			}
		}()
		built, err = krusty.MakeKustomizer(options()).Run(fs, path.Join(mount, dir))
	}
	if p.openAPI {
		schema.alone(run)
	} else {
		schema.shared(run)
	}
	switch {
	case fs.failed != nil:
		return nil, fs.failed
	case fs.refused != nil:
		return nil, fs.refused
	case err != nil:
		return nil, reduce(fs, p.file, err)
	}
	return built, nil
}

func options() *krusty.Options {
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionUnspecified
	return o
}

func decodeObject(raw []byte) (rollout.Object, error) {
	object, err := rollout.FromJSON[map[string]any](raw)
	if err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return object, nil
}

// maxMessage limits errors, in bytes, because kustomize's errors quote whole objects.
const maxMessage = 400

// rootPart matches a prefix of kustomize's errors that names a folder. Each level of bases adds a prefix.
var rootPart = regexp.MustCompile(`(?:recursed accumulation of path|couldn't make target for path|` +
	`recursed merging from path) '([^']*)': `)

// reductions shorten kustomize's errors, which have no types (api/internal/target/kusttarget.go). Kustomize tries each
// path as a file and as a folder, and reports both failures.
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
	// These errors may quote a password.
	{regexp.MustCompile(`literal sources \[.*\]: invalid literal source .*, expected key=value`),
		"a literal is not key=value"},
	{regexp.MustCompile(`line \[[\d ]*\] has invalid utf8 bytes.*`), "a line is not UTF-8"},
	{regexp.MustCompile(`(unable to parse SM or JSON patch) from \[.*\]`), "$1"},
	{regexp.MustCompile(`:? \[patch: ".*"\]`), ""},
	{regexp.MustCompile(`open \S*[\s{:].*: file does not exist`), "a patch is no object and no file"},
	{regexp.MustCompile(`(patch and path can't be set at the same time) .*`), "$1"},
	{regexp.MustCompile(`(is out of bounds for value)(?:( ` + chart.Substitute + `.*)| .*)`), "$1$2"},
	{regexp.MustCompile(`(^|: )decoding .*`), "${1}a JSON patch is not a list of op, path and value"},
	{regexp.MustCompile(`(?:accumulating|merging) resources from '([^']*)': `), "$1: "},
	{regexp.MustCompile(`in object \{\{([^{}]*)\} \{\{([^{}]*)\}.*$`), "in object $1 $2"},
	{regexp.MustCompile(`(?:map\[string\]interface \{\}\{.*"kind":"([^"]*)".*: )?` +
		`json: unsupported type: map\[interface \{\}\]interface \{\}.*$`),
		"$1 a key is not a string in kustomize's output: quote the key; if it is quoted already (null, on, n and the like), rename it"},
	// encoding/json chooses one of the two verbs at random.
	{regexp.MustCompile(`json: (?:cannot|unable to) unmarshal (?:JSON )?(.*) into Go struct \{.*\}`),
		"a schema must be a JSON object, not an $1"},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "…"},
}

// reduce shortens kustomize's error to one line. The line must be equal on all machines, because the state branch
// records it.
func reduce(fs *treeFS, file string, err error) error {
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) {
		return invalid
	}
	text := rollout.YAMLText(unquote(err.Error()))
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
		"use the apiVersion, kind, name and namespace of the object's file, without a prefix that kustomize adds"},
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
