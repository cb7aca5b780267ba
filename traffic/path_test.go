package traffic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
		{"spec[-1]", `brackets take 'name', a number from 0, * or ?(@.field=="value"), at "[-1]"`},
		{"spec[?(@.name)]", `a condition is written as ?(@.field=="value"), at "[?(@.name)]"`},
		{`spec[?(@.name=="a)]`, `the bracket is not closed, at "[?(@.name==\"a)]"`},
	} {
		_, err := parsePath(c.path)
		compare.CheckNamed(t, c.path, cmp.Or(c.problem, "<nil>"), fmt.Sprint(err))
	}
}

// FuzzPath checks that a path's text can be parsed again, and that the path of each found value leads to this value. No input may cause a
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

func TestErrorsNameTheirPlace(t *testing.T) {
	ref := rollout.Ref{Group: "example.com", Kind: "Switch", Namespace: "shop", Name: "a"}
	for _, c := range []struct {
		err       error
		want, fix string
	}{
		{wrong(ref, "spec.x", "is %d", 3).WithFix("write %s", "2"), "example.com/Switch/shop/a: spec.x: is 3; write 2", "write 2"},
		{wrong(ref, "", "is odd"), "example.com/Switch/shop/a: is odd", ""},
		{misfit("alb.ingress", "100%% odd").WithFix("name %q", "x"), `alb.ingress: 100% odd; name "x"`, `name "x"`},
		{missing("a", rollout.Ref{Kind: "Service", Namespace: "shop"}), "a: is missing; name the Service", "name the Service"},
		{missing("a", rollout.Ref{Kind: "Service", Namespace: "shop", Name: "b"}),
			"a: Service/shop/b is not in this app; add it to the kustomization", "add it to the kustomization"},
	} {
		var known *rollout.InvalidError
		if !errors.As(c.err, &known) || known.Error() != c.want || known.Fix != c.fix {
			t.Errorf("%v; %+v", c.err, known)
		}
	}
}
