package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
)

// parsed decodes JSON as the providers do.
func parsed(t testing.TB, text string) any {
	t.Helper()
	var v any
	must(t, json.Unmarshal([]byte(text), &v))
	return v
}

const somewhere = `{"a":{"b.c":1,"list":[{"n":"x","v":1},{"n":"y","v":2},{"n":"z","v":3,"w":null}]},"t":true,"z":null}`

func TestJSONPath(t *testing.T) {
	doc := parsed(t, somewhere)
	for path, want := range map[string]any{
		"{$}": doc, "{}": doc, "{.t}": true, "{$.t}": true, "{$.z}": nil, " {.t} ": true,
		`{.a['b\.c']}`: 1.0, `{.a.b\.c}`: 1.0, "{.a['list'][0]['n']}": "x",
		"{.a.list[1].v}": 2.0, "{.a.list[-1].v}": 3.0, "{.a.list[-1:].v}": 3.0, "{.a.list[*].v}": 1.0, "{.a.list[1:].v}": 2.0,
		"{.a.list[-2:].v}": 2.0, "{.a.list[2,0].v}": 3.0, "{.a.list[:2].n}": "x", "{.a.list[0:3:2].v}": 1.0, "{.a.list[1:1]}": nil,
		"{.z[0].x}":                nil,
		`{.a.list[?(@.n=="y")].v}`: 2.0, `{.a.list[?(@.v > 2.0)].v}`: 3.0, `{.a.list[?(@.w)].n}`: "z", `{.a.list[?(@.n!='x')].v}`: 2.0,
		`{.a.list[?(@.v>9.0)].v}`: nil, "{..v}": 1.0, "{..list[0].n}": "x",
	} {
		got, err := provider.ValueAt(path, doc)
		must(t, err)
		compare.CheckNamed(t, path, want, got)
	}
	for path, want := range map[string]string{
		"{$.nope}": "nope is not found in the answer", "{.a.list[7]}": "index 7, length 3", "{.t.x}": "x is not found",
		"{.t[0]}":                 "bool is not array",
		"{.a['b.c']}":             "b is not found",
		`{.a.list[?(@.v > 2)].v}`: "a number is written as in 2.0", `{.a.list[?(@.w==1.0)].v}`: "w is not found",
		"{.t[?(@.a)]}": "cannot be filtered",
	} {
		if got, err := provider.ValueAt(path, doc); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v and %v, want %q", path, got, err, want)
		}
	}
}

// TestJSONPathRefused checks that checkJSONPath and valueAt refuse paths that cannot lead to one value, or that cost too much.
func TestJSONPathRefused(t *testing.T) {
	for path, want := range map[string]string{
		"$.a": "is not in braces", "a": "is not in braces", "{.a": "is not in braces", "{.a[}": "unterminated array",
		"{.a[x]}":   "invalid array index x",
		"{.a[1:x]}": "invalid array index", "{range .a}": `"range", which is neither`, "{range .a}{.b}{end}": "more than one",
		"{.a}{.b}":   "more than one",
		"{.a}, {.b}": "more than one", "{.a[?(n==1)]}": `"n", which is neither`, "{.a[?(@.n==x)]}": `"x", which is neither`,
		"{.a b}":   `"b", which is neither`,
		"{..a..b}": "more than one ..", "{.a[?(@..b)]..c}": "more than one ..", `{.a[?(@.b[?(@.c)])]}`: "",
		// The quotes hide the inner brackets from the filter's parser.
		`{.a[?(@.b'[?(@.c)].d')]}`:    "a filter within a filter",
		"{.a[0,1,2,3][0,1,2,3][0,1]}": "more than 16", "{" + strings.Repeat(".a", 600) + "}": "longer than 1000",
	} {
		err := provider.CheckJSONPath("jsonPath", path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
		if _, err := provider.ValueAt(path, nil); err == nil {
			t.Errorf("%s: it is followed", path)
		}
	}
	if err := provider.Check("web", map[string]any{"url": "http://a", "jsonPath": "{.a[{{args.index}}]}"}); err != nil {
		t.Errorf("an argument is filled in later: %v", err)
	}
}

// TestJSONPathIsBounded checks that costly paths are evaluated or refused quickly for very deep and very wide responses.
func TestJSONPathIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	wide := "[" + strings.Repeat("[],", 300_000) + "[]]"
	if _, err := provider.ValueAt("{..a}", parsed(t, deep)); err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("got %v", err)
	}
	if got, err := provider.ValueAt("{[0][0][0]}", parsed(t, deep)); err != nil || got == nil {
		t.Errorf("got %v and %v", got, err)
	}
	for _, path := range []string{"{..[*]}", "{[*][*]}", "{..a}", "{[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}", "{[?(@.a)]}", "{..[0:]}"} {
		if _, err := provider.ValueAt(path, parsed(t, wide)); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzJSONPath(f *testing.F) {
	for _, seed := range []string{"{$.a[0]['b'][?(@.c==\"d\")][1:2]..e}", "{.a\\.b[*]}", "{..[?(@)]}", "{[-1:]}", "{[0,'a',*]}",
		"{[?(@.a>1.0)]}", "{\"a\"}", "{.a[0:0:0]}"} {
		f.Add(seed)
	}
	docs := []any{parsed(f, `{"a":[{"b":{"c":"d"}},[1,2,[3]]],"e":"x"}`), parsed(f, "null"), parsed(f, "[]"), parsed(f, `"text"`)}
	f.Fuzz(func(t *testing.T, path string) {
		refused := provider.CheckJSONPath("jsonPath", path)
		for _, doc := range docs {
			if got, err := provider.ValueAt(path, doc); refused != nil && err == nil && path != "" {
				t.Errorf("%q is refused and yields %v", path, got)
			}
		}
	})
}
