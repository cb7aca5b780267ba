package traffic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// at returns the example's Route during a release, with the given weight, and without managed routes, cookie, headers and shares.
func (e example) at(weight int) traffic.Route {
	r := e.route
	r.Weight, r.Active, r.Managed, r.Sticky, r.Headers, r.Shares = weight, true, nil, nil, nil, nil
	return r
}

// rest returns the example's Route between two releases.
func (e example) rest() traffic.Route {
	r := e.at(0)
	r.Active, r.StablePods, r.CanaryPods = false, "", ""
	return r
}

func (e example) lay(t testing.TB, objects []rollout.Object, r traffic.Route) []rollout.Object {
	t.Helper()
	out, err := lay(t, e.kind, e.config, r, objects)
	if err != nil {
		t.Fatalf("%s at %d of %d: %v", e.name, r.Weight, r.Max, err)
	}
	return out.List()
}

// weighted returns the weights in each list that splits requests. The outer key is the path of the list, and the inner key is the name of
// an entry.
func weighted(kind string, o rollout.Object) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	add := func(place string, entries []any, name func(map[string]any) string) {
		shares := map[string]int64{}
		for _, entry := range entries {
			weight, _ := traffic.Number(traffic.Mapping(entry)["weight"])
			shares[name(traffic.Mapping(entry))] += weight
		}
		all[place] = shares
	}
	field := func(name string) func(map[string]any) string {
		return func(entry map[string]any) string { return traffic.Text(entry[name]) }
	}
	spec := o.Map("spec")
	switch kind {
	case "gatewayAPI":
		for i, rule := range traffic.List(spec["rules"]) {
			add(fmt.Sprintf("rules[%d]", i), traffic.List(traffic.Mapping(rule)["backendRefs"]), field("name"))
		}
	case "apisix":
		for i, rule := range traffic.List(spec["http"]) {
			add(fmt.Sprintf("http[%d]", i), traffic.List(traffic.Mapping(rule)["backends"]), field("serviceName"))
		}
	case "smi":
		add("backends", traffic.List(spec["backends"]), field("service"))
	case "traefik":
		add("services", traffic.List(o.Map("spec", "weighted")["services"]), field("name"))
	case "istio":
		for _, section := range []string{"http", "tls", "tcp"} {
			for i, route := range traffic.List(spec[section]) {
				add(fmt.Sprintf("%s[%d]", section, i), traffic.List(traffic.Mapping(route)["route"]), func(entry map[string]any) string {
					destination := traffic.Mapping(entry["destination"])
					host, _, _ := strings.Cut(traffic.Text(destination["host"]), ".")
					return host + "/" + traffic.Text(destination["subset"])
				})
			}
		}
	case "alb":
		for key, value := range o.Map("metadata", "annotations") {
			var action traffic.ALBAction
			if strings.Contains(key, "/actions.") && json.Unmarshal([]byte(traffic.Text(value)), &action) == nil {
				shares := map[string]int64{}
				for _, g := range action.ForwardConfig.TargetGroups {
					shares[g.ServiceName] += int64(g.Weight)
				}
				all[key] = shares
			}
		}
	}
	return all
}

// checkShares checks each list whose weights depend on the Route's weight: all weights add up to Max, and the canary has the Route's
// weight.
func checkShares(t testing.TB, e example, at map[int][]rollout.Object) {
	t.Helper()
	moved := map[string]bool{}
	places := func(objects []rollout.Object) map[string]map[string]int64 {
		all := map[string]map[string]int64{}
		for _, o := range objects {
			for place, shares := range weighted(e.kind, o) {
				all[o.Ref().String()+" "+place] = shares
			}
		}
		return all
	}
	weights := slices.Sorted(maps.Keys(at))
	first := places(at[weights[0]])
	for _, w := range weights[1:] {
		for place, shares := range places(at[w]) {
			moved[place] = moved[place] || !maps.Equal(first[place], shares)
		}
	}
	for _, w := range weights {
		for place, shares := range places(at[w]) {
			if !moved[place] {
				continue
			}
			var sum int64
			for _, weight := range shares {
				sum += weight
			}
			has := slices.Contains(slices.Collect(maps.Values(shares)), int64(w)) || w == 0
			want := int64(e.route.Max)
			if e.name == "istio/subsets" { // the third subset of this example keeps its weight
				want = max(want, int64(w)+shares["shop/preview"])
			}
			if sum != want || !has {
				t.Errorf("%s, %s at %d of %d: weights %v", e.name, place, w, e.route.Max, shares)
			}
		}
	}
	if len(moved) > 0 && !slices.Contains(slices.Collect(maps.Values(moved)), true) && len(weights) > 1 {
		t.Errorf("%s: no weight changes anything", e.name)
	}
}

func someWeights(all int) []int {
	weights := []int{0, 1, all / 8, all / 3, all / 2, all - 1, all}
	slices.Sort(weights)
	return slices.Compact(weights)
}

func TestWeightsAddUpToAllRequests(t *testing.T) {
	for _, e := range accepted(t) {
		at := map[int][]rollout.Object{}
		for _, w := range someWeights(e.route.Max) {
			at[w] = e.lay(t, e.objects, e.at(w))
		}
		checkShares(t, e, at)
	}
}

// TestSharesOfGeneratedObjects checks the weights of routers whose weight is in an object that the release generates.
func TestSharesOfGeneratedObjects(t *testing.T) {
	for _, e := range accepted(t, "nginx", "ambassador") {
		for _, w := range someWeights(e.route.Max) {
			made := 0
			for _, o := range e.lay(t, e.objects, e.at(w)) {
				if o.Annotation(rollout.AnnotationGenerated) != e.route.Name {
					continue
				}
				made++
				share, of := o.Map("spec")["weight"], int64(100)
				got, _ := traffic.Number(share)
				for key, value := range o.Map("metadata", "annotations") {
					n, _ := strconv.ParseInt(traffic.Text(value), 10, 64)
					switch {
					case strings.HasSuffix(key, "/canary-weight"):
						got = n
					case strings.HasSuffix(key, "/canary-weight-total"):
						of = n
					}
				}
				if got*int64(e.route.Max) != int64(w)*of {
					t.Errorf("%s: %d of %d is written as %d of %d", e.name, w, e.route.Max, got, of)
				}
			}
			if made == 0 && w > 0 {
				t.Errorf("%s at %d: no object is made", e.name, w)
			}
		}
	}
}

// own has a regular expression for each router. If a Route sets only a weight, only fields whose paths match may change in users' objects.
var own = map[string]string{
	"gatewayAPI": `^spec\.rules\[\d+\]\.backendRefs(\[\d+\])?(\.weight)?$`,
	"nginx":      `^metadata\.annotations\.[^/]+/(affinity|session-cookie-[a-z-]+)$`,
	"alb":        `^metadata\.annotations\.[^/]+/actions\.[a-z-]+$`,
	// At weight 0, the canary's entry is removed, so the index of each later entry changes.
	"traefik":    `^spec\.weighted\.services(\[\d+\])?(\.(weight|name|port))?$`,
	"istio":      `^spec\.(http|tls|tcp)\[\d+\]\.route(\[\d+\])?(\.weight)?$|^spec\.subsets\[\d+\]\.labels(\.pod-template-hash)?$`,
	"smi":        `^spec\.backends(\[\d+\])?(\.weight)?$`,
	"ambassador": `^spec\.service$`,
	"apisix":     `^spec\.http\[\d+\]\.backends(\[\d+\])?(\.weight)?$`,
	"object":     `(?i)weight|hash|service|\.percent|labels|subset|spec\.`,
}

func changed(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	var all []string
	switch was := before.(type) {
	case map[string]any:
		is, ok := after.(map[string]any)
		if !ok {
			return []string{path}
		}
		for key := range was {
			if _, still := is[key]; !still {
				all = append(all, path+"."+key)
			}
		}
		for key, value := range is {
			old, there := was[key]
			switch {
			case there:
				all = append(all, changed(path+"."+key, old, value)...)
			case key == "labels" || key == "annotations":
				all = append(all, changed(path+"."+key, map[string]any{}, value)...)
			default:
				all = append(all, path+"."+key)
			}
		}
	case []any:
		is, ok := after.([]any)
		if !ok {
			return []string{path}
		}
		if len(is) != len(was) {
			all = append(all, path)
		}
		for i := range min(len(is), len(was)) {
			all = append(all, changed(fmt.Sprintf("%s[%d]", path, i), was[i], is[i])...)
		}
	default:
		return []string{path}
	}
	return all
}

func TestNothingElseOfTheUsersIsTouched(t *testing.T) {
	for _, e := range accepted(t) {
		mine := regexp.MustCompile(own[e.kind])
		for _, w := range someWeights(e.route.Max) {
			after := map[rollout.Ref]rollout.Object{}
			var order []rollout.Ref
			for _, o := range e.lay(t, e.objects, e.at(w)) {
				after[o.Ref()] = o
				if o.Annotation(rollout.AnnotationGenerated) == "" {
					order = append(order, o.Ref())
				}
			}
			for i, o := range e.objects {
				if i >= len(order) || order[i] != o.Ref() {
					t.Fatalf("%s: the order is %v", e.name, order)
				}
				for _, place := range changed("", map[string]any(o), map[string]any(after[o.Ref()])) {
					if place = strings.TrimPrefix(place, "."); !mine.MatchString(place) {
						t.Errorf("%s at %d: %s of %s is changed", e.name, w, place, o.Ref())
					}
				}
			}
		}
	}
}

// users returns the objects that are not generated for a release.
func users(objects []rollout.Object) []rollout.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o rollout.Object) bool {
		return o.Annotation(rollout.AnnotationGenerated) != ""
	})
}

// withoutZeros removes empty mappings, and list entries with weight 0, because both have no effect.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case rollout.Object:
		return withoutZeros(map[string]any(v))
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if m, ok := value.(map[string]any); !ok || len(m) > 0 {
				out[key] = withoutZeros(value)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			if weight, given := traffic.Number(traffic.Mapping(value)["weight"]); !given || weight != 0 {
				out = append(out, withoutZeros(value))
			}
		}
		return out
	default:
		return v
	}
}

// TestOverlaysCanBeRepeated checks that an overlay's result does not depend on earlier overlays. Between releases, objects must contain
// nothing from a release.
func TestOverlaysCanBeRepeated(t *testing.T) {
	for _, e := range accepted(t) {
		w := e.route.Max / 3
		rest := e.lay(t, e.objects, e.rest())
		if made := len(rest) - len(users(rest)); made > 0 {
			t.Errorf("%s: %d objects are made at rest", e.name, made)
		}
		compare.CheckNamed(t, e.name+": rest over rest", dump(t, rest), dump(t, e.lay(t, rest, e.rest())))
		release := e.lay(t, e.objects, e.at(w))
		compare.CheckNamed(t, e.name+": the same twice", dump(t, release), dump(t, e.lay(t, e.objects, e.at(w))))
		compare.CheckNamed(t, e.name+": the same over itself", dump(t, release), dump(t, e.lay(t, users(release), e.at(w))))
		back := e.lay(t, users(release), e.rest())
		for i := range rest {
			compare.CheckNamed(t, e.name+": rest after a release", dump(t, withoutZeros(rest[i])), dump(t, withoutZeros(back[i])))
		}
	}
}

// spoil changes a JSON value in one place: it removes or doubles an element, or replaces a value by a value of another type.
func spoil(random *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 || random.IntN(8) == 0 {
			return strange(random)
		}
		out, key := maps.Clone(v), keys[random.IntN(len(keys))]
		if random.IntN(6) == 0 {
			delete(out, key)
		} else {
			out[key] = spoil(random, v[key])
		}
		return out
	case []any:
		if len(v) == 0 || random.IntN(8) == 0 {
			return strange(random)
		}
		out, i := slices.Clone(v), random.IntN(len(v))
		switch random.IntN(6) {
		case 0:
			return slices.Delete(out, i, i+1)
		case 1:
			return slices.Insert(out, i, rollout.Object{"x": v[i]}.Copy()["x"])
		default:
			out[i] = spoil(random, v[i])
			return out
		}
	default:
		return strange(random)
	}
}

func strange(random *rand.Rand) any {
	all := []any{
		nil, "", "shop", "shop-canary", "main", true, int64(0), int64(1), int64(-7), int64(1) << 40, 1.5,
		[]any{}, []any{nil}, []any{map[string]any{}}, []any{"shop"}, map[string]any{}, map[string]any{"name": "shop"},
		map[string]any{"name": nil, "weight": "x"},
	}
	return rollout.Object{"x": all[random.IntN(len(all))]}.Copy()["x"]
}

// checkSpoiled breaks an object and applies a Route to all objects. The overlay must either refuse the object with a reason, or set correct
// weights.
func checkSpoiled(t testing.TB, e example, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	if len(e.objects) == 0 {
		return
	}
	objects := slices.Clone(e.objects)
	i := random.IntN(len(objects))
	broken, ok := spoil(random, map[string]any(objects[i])).(map[string]any)
	if !ok {
		return
	}
	objects[i] = broken
	untouched := dump(t, objects)
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s, seed %d: panic: %v with\n%s", e.name, seed, r, untouched)
		}
	}()
	route, at := e.route, map[int][]rollout.Object{}
	for _, w := range []int{route.Weight, route.Max / 5, route.Max / 2} {
		if route = e.at(w); w == e.route.Weight {
			route = e.route
		}
		out, err := lay(t, e.kind, e.config, route, objects)
		if after := dump(t, objects); after != untouched {
			t.Errorf("%s, seed %d: the objects before were changed:\n%s", e.name, seed, compare.Diff(untouched, after))
		}
		var known *rollout.InvalidError
		if err != nil && (!errors.As(err, &known) || known.Msg == "") {
			t.Errorf("%s, seed %d: the error is no InvalidError with a message: %v", e.name, seed, err)
		}
		if err == nil && len(route.Managed) == 0 && route.Sticky == nil {
			at[w] = out.List()
		}
	}
	if len(at) > 1 {
		spoiled := e
		spoiled.name = fmt.Sprintf("%s, seed %d", e.name, seed)
		checkShares(silent{t}, spoiled, at)
	}
}

// silent is a testing.TB that ignores one error of checkShares: that no weight changes an object.
type silent struct{ testing.TB }

func (s silent) Errorf(format string, args ...any) {
	if !strings.Contains(format, "no weight changes anything") {
		s.TB.Errorf(format, args...)
	}
}

func TestSpoiledObjects(t *testing.T) {
	for _, e := range examples(t) {
		for seed := range uint64(40) {
			checkSpoiled(t, e, seed)
		}
	}
}

// FuzzSpoiledObjects checks that a broken object never makes an overlay panic or set wrong weights.
func FuzzSpoiledObjects(f *testing.F) {
	all := examples(f)
	for i := range all {
		f.Add(uint(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, i uint, seed uint64) { checkSpoiled(t, all[i%uint(len(all))], seed) })
}
