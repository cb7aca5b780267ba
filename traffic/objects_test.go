package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func configMap(name string) rollout.Object {
	return rollout.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"data": map[string]any{"a": "1"},
	}
}

func configMaps(names ...string) *Objects { return NewObjects(rollout.Mapped(names, configMap)) }

func TestEditCopiesOnce(t *testing.T) {
	before := []rollout.Object{configMap("a"), configMap("b")}
	o := NewObjects(before)
	ref := before[0].Ref()
	first, ok := o.Edit(ref)
	if !ok {
		t.Fatal("a is not there")
	}
	set(first, "2", "data", "a")
	second, _ := o.Edit(ref)
	found, _ := o.Find(ref)
	if text(second.Map("data")["a"]) != "2" || text(found.Map("data")["a"]) != "2" || text(before[0].Map("data")["a"]) != "1" {
		t.Errorf("edited %v, found %v, before %v", second, found, before[0])
	}
	gone := rollout.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	if _, ok := o.Edit(gone); ok {
		t.Error("c can be edited")
	}
	if _, ok := o.Find(gone); ok {
		t.Error("c is found")
	}
}

func TestGeneratedObjectsHaveTheirPlace(t *testing.T) {
	by := Route{Name: "web"}
	ref := func(name string) rollout.Ref { return configMap(name).Ref() }
	for name, c := range map[string]struct {
		beside string
		shift  int
		want   string
	}{
		"after the first":  {"a", 0, "a new b c"},
		"after the last":   {"c", 0, "a b c new"},
		"after no object":  {"d", 0, "a b c new"},
		"before the first": {"a", -1, "new a b c"},
		"before another":   {"b", -1, "a new b c"},
		"before the last":  {"c", -1, "a b new c"},
	} {
		o := configMaps("a", "b", "c")
		must(t, o.generate(configMap("new"), o.after(ref(c.beside))+c.shift, by))
		if got := strings.Join(rollout.Mapped(o.List(), rollout.Object.Name), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		made, _ := o.Find(ref("new"))
		if made.Annotation(rollout.AnnotationGenerated) != "web" {
			t.Errorf("it is not marked: %v", made)
		}
		for _, one := range []string{"a", "b", "c", "new"} {
			if found, _ := o.Find(ref(one)); found.Name() != one {
				t.Errorf("%s is found as %s", one, found.Name())
			}
		}
		if err := o.generate(configMap("b"), o.after(ref("a")), by); err == nil || !strings.HasPrefix(err.Error(),
			"core/ConfigMap/shop/b: has the name of an object that gitrollout generates for releases of Rollout web") {
			t.Errorf("an object of the user's is taken over: %v", err)
		}
	}
}

func TestOnePlaceHasOneRollout(t *testing.T) {
	o := configMaps("a")
	ref := configMap("a").Ref()
	for _, c := range []struct{ place, by, want string }{
		{"spec.a", "web", ""}, {"spec.a", "web", ""}, {"spec.b", "api", ""},
		{"spec.a", "api", "core/ConfigMap/shop/a: spec.a: is changed by two Rollouts, web and api; give each a separate route or Service"},
	} {
		err := o.Claim(ref, c.place, Route{Name: c.by})
		compare.CheckNamed(t, c.place+" by "+c.by, cmp.Or(c.want, "<nil>"), fmt.Sprint(err))
	}
}

func TestSetMakesTheWay(t *testing.T) {
	m := map[string]any{"a": "text", "b": map[string]any{"c": "1"}}
	set(m, "2", "b", "d")
	set(m, "3", "a", "e")
	set(m, "4", "f")
	want := map[string]any{"a": map[string]any{"e": "3"}, "b": map[string]any{"c": "1", "d": "2"}, "f": "4"}
	compare.Check(t, want, m)
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
		{missing("a", "Service", "shop", ""), "a: is missing; name the Service", "name the Service"},
		{missing("a", "Service", "shop", "b"), "a: Service/shop/b is not in this app; add it to the kustomization",
			"add it to the kustomization"},
	} {
		var known *rollout.InvalidError
		if !errors.As(c.err, &known) || known.Error() != c.want || known.Fix != c.fix {
			t.Errorf("%v; %+v", c.err, known)
		}
	}
}

func TestManagedRoutesComeAndGo(t *testing.T) {
	set := func(name string) rollout.Step {
		return rollout.Step{Route: &rollout.ManagedRoute{Name: name, Matches: []rollout.Match{withHeader("x", "1")}}}
	}
	unset := func(name string) rollout.Step { return rollout.Step{Route: &rollout.ManagedRoute{Name: name}} }
	steps := []rollout.Step{set("b"), {}, set("a"), set("c"), unset("a"), set("b"), set("a")}
	names := func(n int, order ...string) []string {
		return rollout.Mapped(Managed(steps[:n], order), func(r rollout.ManagedRoute) string { return r.Name })
	}
	for n, want := range []string{"", "b", "b", "a b", "a b c", "b c", "b c", "a b c"} {
		got := names(n, []string{"a", "c", "b"}[:min(n, 1)]...)
		slices.Sort(got)
		compare.CheckNamed(t, fmt.Sprintf("after %d steps", n), want, strings.Join(got, " "))
	}
	compare.CheckNamed(t, "unnamed routes first, then named routes in their order", []string{"b", "c", "a"}, names(len(steps), "c", "a"))
}

func TestStagesAreAllThatAReleaseAsksFor(t *testing.T) {
	weight := func(n int) rollout.Step { return rollout.Step{SetWeight: &n} }
	staff := rollout.ManagedRoute{Name: "staff", Matches: []rollout.Match{{}}}
	spec := rollout.Spec{
		Name: "web", Workload: rollout.Workload{Namespace: "shop", Name: "web"},
		Canary: &rollout.Canary{
			StableService: "web", CanaryService: "web-canary",
			Traffic: &rollout.Traffic{MaxWeight: 1000},
			Steps:   []rollout.Step{weight(50), {Route: &staff}, weight(500)},
		},
	}
	describe := func(r Route) string {
		return fmt.Sprintf("%s %s %d/%d %v %d", r.Stable, r.Canary, r.Weight, r.Max, r.Active, len(r.Managed))
	}
	want := []string{
		"web web-canary 0/1000 false 0", "web web-canary 1000/1000 true 0",
		"web web-canary 50/1000 true 0", "web web-canary 1000/1000 true 1", "web web-canary 500/1000 true 1",
	}
	for _, r := range Stages(spec) {
		if r.Active != (r.CanaryPods != "") || r.Active != (r.StablePods != "") {
			t.Errorf("pods of %+v", r)
		}
	}
	compare.Check(t, want, rollout.Mapped(Stages(spec), describe))
	spec.Canary.PingPong = &rollout.PingPong{PingService: "ping", PongService: "pong"}
	got := rollout.Mapped(Stages(spec), describe)
	if len(got) != 10 || !strings.HasPrefix(got[0], "ping pong 0/") || !strings.HasPrefix(got[5], "pong ping 0/") {
		t.Errorf("with pingPong: %q", got)
	}
}
