package traffic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

func TestParsePath(t *testing.T) {
	for _, c := range []struct{ path, problem string }{
		{"spec.weight", ""},
		{"$.spec['a.b'].c[0][*].d", ""},
		{`spec.routes[?(@.name == "a]b")].weight`, ""},
		{`spec.routes[?(@.a.b==80)].weight`, ""},
		{"", "is empty"},
		{"spec..weight", `a dot must be followed by a name; write names with special characters as ['name'], at "..weight"`},
		{"spec.", `a dot must be followed by a name; write names with special characters as ['name'], at "."`},
		{"spec[0", `the bracket is not closed, at "[0"`},
		{"spec[0]weight", `a dot or a bracket belongs here, at "weight"`},
		{"spec[-1]", `in brackets belong 'name', a number from 0, * or ?(@.field=="value"), at "[-1]"`},
		{"spec[?(@.name)]", `a condition is written as ?(@.field=="value"), at "[?(@.name)]"`},
		{`spec[?(@.name=="a)]`, `the bracket is not closed, at "[?(@.name==\"a)]"`},
	} {
		_, err := parsePath(c.path)
		compare.CheckNamed(t, c.path, cmp.Or(c.problem, "<nil>"), fmt.Sprint(err))
	}
}

// FuzzPath checks that the text of a path parses again, and that the path of each found place leads to the same value. No input may cause a
// panic.
func FuzzPath(f *testing.F) {
	f.Add(`spec.routes[?(@.name=="main")].weight`, `{"spec":{"routes":[{"name":"main","weight":1}]}}`)
	f.Add("$['a'][0][*]", `{"a":[[1,2.5,null,true,"x"]]}`)
	f.Fuzz(func(t *testing.T, written, content string) {
		p, err := parsePath(written)
		if err != nil {
			return
		}
		again, err := parsePath(p.String())
		if err != nil || again.String() != p.String() || len(again) != len(p) {
			t.Fatalf("%q is written as %q, which is %d steps and not %d (%v)", written, p, len(again), len(p), err)
		}
		var object map[string]any
		if json.Unmarshal([]byte(content), &object) != nil {
			return
		}
		places, err := p.find(object)
		if (err == nil) != (len(places) > 0) {
			t.Fatalf("%d places and the error %v", len(places), err)
		}
		for _, at := range places {
			exact, err := parsePath(at.path)
			if err != nil {
				t.Fatalf("the place %q is not a valid path: %v", at.path, err)
			}
			same, err := exact.find(object)
			if err != nil || len(same) != 1 || !compare.Equal(same[0].value, at.value) {
				t.Fatalf("%q leads to %v (%v), %q to %v", at.path, same, err, p, at.value)
			}
		}
		_, _, _ = p.parents(object)
	})
}
