package traffic_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

func configMap(name string) rollout.Object {
	return rollout.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"data": map[string]any{"a": "1"},
	}
}

func configMaps(names ...string) *traffic.Objects {
	return traffic.NewObjects(rollout.Mapped(names, configMap))
}

func TestEditCopiesOnce(t *testing.T) {
	before := []rollout.Object{configMap("a"), configMap("b")}
	o := traffic.NewObjects(before)
	ref := before[0].Ref()
	first, ok := o.Edit(ref)
	if !ok {
		t.Fatal("a is not there")
	}
	traffic.Set(first, "2", "data", "a")
	second, _ := o.Edit(ref)
	found, _ := o.Find(ref)
	if traffic.Text(second.Map("data")["a"]) != "2" || traffic.Text(found.Map("data")["a"]) != "2" ||
		traffic.Text(before[0].Map("data")["a"]) != "1" {
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
	by := traffic.Route{Name: "web"}
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
		must(t, o.Generate(configMap("new"), o.After(ref(c.beside))+c.shift, by))
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
		if err := o.Generate(configMap("b"), o.After(ref("a")), by); err == nil || !strings.HasPrefix(err.Error(),
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
		err := o.Claim(ref, c.place, traffic.Route{Name: c.by})
		compare.CheckNamed(t, c.place+" by "+c.by, cmp.Or(c.want, "<nil>"), fmt.Sprint(err))
	}
}

func TestSetMakesTheWay(t *testing.T) {
	m := map[string]any{"a": "text", "b": map[string]any{"c": "1"}}
	traffic.Set(m, "2", "b", "d")
	traffic.Set(m, "3", "a", "e")
	traffic.Set(m, "4", "f")
	want := map[string]any{"a": map[string]any{"e": "3"}, "b": map[string]any{"c": "1", "d": "2"}, "f": "4"}
	compare.Check(t, want, m)
}

func TestManagedRoutesComeAndGo(t *testing.T) {
	set := func(name string) rollout.Step {
		return rollout.Step{Route: &rollout.ManagedRoute{Name: name, Matches: []rollout.Match{withHeader("x", "1")}}}
	}
	unset := func(name string) rollout.Step { return rollout.Step{Route: &rollout.ManagedRoute{Name: name}} }
	steps := []rollout.Step{set("b"), {}, set("a"), set("c"), unset("a"), set("b"), set("a")}
	names := func(n int, order ...string) []string {
		return rollout.Mapped(traffic.Managed(steps[:n], order), func(r rollout.ManagedRoute) string { return r.Name })
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
	describe := func(r traffic.Route) string {
		return fmt.Sprintf("%s %s %d/%d %v %d", r.Stable, r.Canary, r.Weight, r.Max, r.Active, len(r.Managed))
	}
	want := []string{
		"web web-canary 0/1000 false 0", "web web-canary 1000/1000 true 0",
		"web web-canary 50/1000 true 0", "web web-canary 1000/1000 true 1", "web web-canary 500/1000 true 1",
	}
	for _, r := range traffic.Stages(spec) {
		if r.Active != (r.CanaryPods != "") || r.Active != (r.StablePods != "") {
			t.Errorf("pods of %+v", r)
		}
	}
	compare.Check(t, want, rollout.Mapped(traffic.Stages(spec), describe))
	spec.Canary.PingPong = &rollout.PingPong{PingService: "ping", PongService: "pong"}
	got := rollout.Mapped(traffic.Stages(spec), describe)
	if len(got) != 10 || !strings.HasPrefix(got[0], "ping pong 0/") || !strings.HasPrefix(got[5], "pong ping 0/") {
		t.Errorf("with pingPong: %q", got)
	}
}
