package render

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAnyValueAnywhere puts unexpected values at each field of valid apps: the app is rendered, or refused with a
// reason. It must not panic, since validate does not recover from panics.
func TestAnyValueAnywhere(t *testing.T) {
	repos := map[string]map[string]string{"an experiment": experimentApp(t, experimentRollout)}
	found, err := filepath.Glob("../examples/*/apps/*/base/*.yaml")
	if err != nil || len(found) < 10 {
		t.Fatalf("%d files of examples: %v", len(found), err)
	}
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Dir(name); repos[dir] == nil {
			repos[dir] = map[string]string{}
		}
		repos[filepath.Dir(name)][filepath.Base(name)] = string(data)
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
					if err != nil {
						t.Fatal(err)
					}
					changed := slices.Clone(docs)
					changed[i] = string(data)
					renderAnything(t, repo+"/"+name+": "+path, with(files, name, strings.Join(changed, "\n---\n")))
					tried++
				}
				everywhere(tree, func(path string) { look(path, tree) })
				for _, text := range texts(tree) { // the comparison is the same in both places
					look("each "+text, replaced(tree, text))
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

// renderAnything fails the test if a render panics, or returns an error that does not help a user.
func renderAnything(t *testing.T, what string, files map[string]string) {
	defer func() {
		if problem := recover(); problem != nil {
			t.Errorf("%s: %v", what, problem)
		}
	}()
	app := rollout.App{Name: "shop", Namespace: "shop"}
	_, err := New(InProcess{CheckProvider: provider.Check}).Render(newTree(files), app, rollout.Commit{})
	var invalid *rollout.InvalidError
	if err != nil && !errors.As(err, &invalid) {
		t.Errorf("%s: %v", what, err)
	}
}

// everywhere calls visit with a tree in which one value after another is replaced.
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

// texts returns the distinct texts of a tree.
func texts(tree any) []string {
	all := map[string]bool{}
	everyText(tree, func(text string) any { all[text] = true; return text })
	return slices.Sorted(maps.Keys(all))
}

// replaced returns a tree with a mapping in each place of a text.
func replaced(tree any, text string) any {
	return everyText(tree, func(is string) any {
		if is == text {
			return map[string]any{"a": "b"}
		}
		return is
	})
}

// everyText returns a copy of a tree with a function applied to each text.
func everyText(tree any, becomes func(string) any) any {
	switch tree := tree.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range tree {
			if out[key] = value; key != "name" && key != "kind" && key != "apiVersion" { // otherwise there is nothing to check
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
