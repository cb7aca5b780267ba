package render_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAnyValueAnywhere replaces each value of valid apps by an unexpected value. The app must be rendered, or refused
// with a reason. A panic would crash "gitrollout validate".
func TestAnyValueAnywhere(t *testing.T) {
	repos := map[string]map[string]string{"an experiment": experimentApp(t, experimentRollout)}
	bases, err := filepath.Glob("../examples/*/apps/*/base")
	must(t, err)
	for _, base := range bases {
		repos[base] = readFiles(t, base)
	}
	if len(bases) < 5 {
		t.Fatalf("examples have the bases %q", bases)
	}
	tried := 0
	for repo, files := range repos {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			docs := strings.Split(files[name], "\n---\n")
			for i, doc := range docs {
				var tree any
				if err := yaml.Unmarshal([]byte(doc), &tree); err != nil {
					t.Fatalf("%s/%s: %v", repo, name, err)
				}
				look := func(path string, tree any) {
					data, err := yaml.Marshal(tree)
					must(t, err)
					changed := slices.Clone(docs)
					changed[i] = string(data)
					renderAnything(t, repo+"/"+name+": "+path, with(files, name, strings.Join(changed, "\n---\n")))
					tried++
				}
				everywhere(tree, func(path string) { look(path, tree) })
				texts := map[string]bool{}
				everyText(tree, func(text string) any { texts[text] = true; return text })
				for text := range texts { // replace equal texts together, because some fields must stay equal
					look("each "+text, everyText(tree, func(is string) any {
						if is == text {
							return map[string]any{"a": "b"}
						}
						return is
					}))
				}
			}
		}
	}
	least := 1000
	if testing.Short() {
		least /= 2
	}
	if t.Logf("%d values", tried); tried < least {
		t.Errorf("only %d values were tried", tried)
	}
}

// renderAnything fails the test if a render panics or returns an error that is no InvalidError.
func renderAnything(t *testing.T, what string, files map[string]string) {
	defer func() {
		if problem := recover(); problem != nil {
			t.Errorf("%s: %v", what, problem)
		}
	}()
	_, err := render.New(render.InProcess{CheckProvider: provider.Check}).Render(newTree(files), demo, rollout.Commit{})
	if err != nil && !rollout.IsInvalid(err) {
		t.Errorf("%s: %v", what, err)
	}
}

// everywhere replaces each value of a tree in turn. It calls visit after each change, and then restores the value.
func everywhere(tree any, visit func(path string)) {
	odd := []any{map[string]any{"a": "b"}, []any{map[string]any{"a": "b"}}, int64(-7)}
	if testing.Short() {
		odd = odd[:1]
	}
	try := func(path string, is any, set func(any)) {
		for _, value := range odd {
			set(value)
			visit(fmt.Sprintf("%s = %v", path, value))
		}
		set(is)
		everywhere(is, func(below string) { visit(path + "." + below) })
	}
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			try(key, tree[key], func(v any) { tree[key] = v })
		}
	case []any:
		for i := range tree {
			try(fmt.Sprint(i), tree[i], func(v any) { tree[i] = v })
		}
	}
}

// everyText returns a copy of a tree with each text replaced by the result of a function.
func everyText(tree any, becomes func(string) any) any {
	switch tree := tree.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range tree {
			if out[key] = value; key != "name" && key != "kind" && key != "apiVersion" { // the checks find objects by name and kind
				out[key] = everyText(value, becomes)
			}
		}
		return out
	case []any:
		out := make([]any, len(tree))
		for i, value := range tree {
			out[i] = everyText(value, becomes)
		}
		return out
	case string:
		return becomes(tree)
	default:
		return tree
	}
}
