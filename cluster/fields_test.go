package cluster

import (
	"encoding/json"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// tree reads JSON as the clients do: whole numbers are int64 in objects, and
// field trees have none.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

const ownedService = `{
	"f:metadata": {"f:labels": {"f:app": {}}},
	"f:spec": {
		"f:ports": {
			"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
			"k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}
		},
		"f:selector": {},
		"f:finalizers": {"v:\"x\"": {}}
	}
}`

const liveService = `{
	"metadata": {"labels": {"app": "shop", "foreign": "1"}, "resourceVersion": "7"},
	"spec": {
		"clusterIP": "10.0.0.1",
		"ports": [
			{"name": "web", "port": 80, "protocol": "TCP", "nodePort": 30000},
			{"port": 53, "protocol": "UDP"},
			{"port": 9, "protocol": "TCP"}
		],
		"selector": {"app": "shop"},
		"finalizers": ["x", "y"]
	},
	"status": {"loadBalancer": {}}
}`

// changes of a live object, and whether they concern what is owned.
func TestFingerprintSeesOwnedFieldsOnly(t *testing.T) {
	edits := map[string]struct {
		edit  func(o map[string]any)
		drift bool
	}{
		"a foreign label":            {func(o map[string]any) { dig(o, "metadata", "labels")["foreign"] = "2" }, false},
		"a new resource version":     {func(o map[string]any) { dig(o, "metadata")["resourceVersion"] = "8" }, false},
		"status":                     {func(o map[string]any) { o["status"] = "x" }, false},
		"a defaulted field":          {func(o map[string]any) { port(o, 0)["nodePort"] = 1 }, false},
		"a foreign list element":     {func(o map[string]any) { port(o, 2)["port"] = 10 }, false},
		"a foreign set element":      {func(o map[string]any) { dig(o, "spec")["finalizers"] = []any{"z", "x"} }, false},
		"the order of elements":      {func(o map[string]any) { p := ports(o); p[0], p[2] = p[2], p[0] }, false},
		"an owned label":             {func(o map[string]any) { dig(o, "metadata", "labels")["app"] = "other" }, true},
		"an owned label gone":        {func(o map[string]any) { delete(dig(o, "metadata", "labels"), "app") }, true},
		"an owned field of a port":   {func(o map[string]any) { port(o, 0)["name"] = "other" }, true},
		"an owned port gone":         {func(o map[string]any) { dig(o, "spec")["ports"] = ports(o)[1:] }, true},
		"a key added to an own map":  {func(o map[string]any) { dig(o, "spec", "selector")["x"] = "y" }, true},
		"an owned set element gone":  {func(o map[string]any) { dig(o, "spec")["finalizers"] = []any{"y"} }, true},
		"the owned list is no list":  {func(o map[string]any) { dig(o, "spec")["ports"] = "none" }, true},
		"the object has lost a part": {func(o map[string]any) { delete(o, "spec") }, true},
	}
	owned := tree(t, ownedService)
	before := fingerprint(owned, tree(t, liveService))
	for name, c := range edits {
		live := tree(t, liveService)
		c.edit(live)
		if drift := fingerprint(owned, live) != before; drift != c.drift {
			t.Errorf("%s: drift is %v, want %v", name, drift, c.drift)
		}
	}
	taken := tree(t, ownedService)
	delete(dig(taken, "f:metadata", "f:labels"), "f:app")
	if fingerprint(taken, tree(t, liveService)) == before {
		t.Error("a field that another manager took is no drift")
	}
}

func dig(o map[string]any, path ...string) map[string]any {
	for _, name := range path {
		o = o[name].(map[string]any)
	}
	return o
}

func ports(o map[string]any) []any                { return dig(o, "spec")["ports"].([]any) }
func port(o map[string]any, i int) map[string]any { return ports(o)[i].(map[string]any) }

const desiredService = `{
	"apiVersion": "v1", "kind": "Service",
	"metadata": {"name": "shop", "namespace": "a", "labels": {"app": "shop"}},
	"spec": {"ports": [{"name": "web", "port": 80}, {"port": 53, "protocol": "UDP"}], "selector": {"app": "shop"}, "finalizers": ["x"]}
}`

func TestHoldsProvesThatNothingIsToBeWritten(t *testing.T) {
	owned, live := tree(t, ownedService), tree(t, liveService)
	if !holds(owned, tree(t, desiredService), live) {
		t.Fatal("what was applied does not hold")
	}
	edits := map[string]func(owned, desired, live map[string]any){
		"a changed value":           func(_, _, l map[string]any) { dig(l, "metadata", "labels")["app"] = "other" },
		"a changed value in a list": func(_, _, l map[string]any) { port(l, 0)["name"] = "other" },
		"a value that is gone":      func(_, _, l map[string]any) { delete(port(l, 0), "name") },
		"an element that is gone":   func(_, _, l map[string]any) { dig(l, "spec")["ports"] = ports(l)[:1] },
		"a field that is not ours":  func(o, _, _ map[string]any) { delete(o, "f:metadata") },
		"a field that Git does not have": func(o, _, _ map[string]any) {
			dig(o, "f:metadata", "f:labels")["f:old"] = map[string]any{}
		},
		"an element that Git does not have": func(_, d, _ map[string]any) { dig(d, "spec")["ports"] = ports(d)[:1] },
		"a new field in Git":                func(_, d, _ map[string]any) { dig(d, "spec")["type"] = "NodePort" },
		"a new element in Git":              func(_, d, _ map[string]any) { dig(d, "spec")["ports"] = append(ports(d), map[string]any{"port": 1.0}) },
		"another selector in Git":           func(_, d, _ map[string]any) { dig(d, "spec")["selector"] = map[string]any{"app": "x"} },
	}
	for name, edit := range edits {
		owned, desired, live := tree(t, ownedService), tree(t, desiredService), tree(t, liveService)
		edit(owned, desired, live)
		if holds(owned, desired, live) {
			t.Errorf("holds in spite of %s", name)
		}
	}
}

func TestEquivalentAllowsWhatTheServerNormalises(t *testing.T) {
	same := [][2]any{
		{"1000m", "1"}, {0.5, "500m"}, {int64(1), "1"}, {"1024Mi", "1Gi"}, {false, nil}, {int64(0), nil}, {"", nil},
		{map[string]any{}, nil}, {[]any{}, nil}, {nil, "anything"}, {int64(80), float64(80)}, {"YQ==\n", "YQ=="},
		{map[string]any{"port": int64(80), "x": nil}, map[string]any{"port": int64(80), "protocol": "TCP"}},
		{[]any{map[string]any{"a": "b"}}, []any{map[string]any{"a": "b", "defaulted": true}}},
	}
	for _, c := range same {
		if !equivalent(c[0], c[1]) {
			t.Errorf("%v and %v differ", c[0], c[1])
		}
	}
	different := [][2]any{
		{"1", "2"}, {"a", "b"}, {true, nil}, {int64(3), nil}, {"x", nil}, {true, false}, {[]any{"a"}, []any{"a", "b"}},
		{[]any{"a", "b"}, []any{"b", "a"}}, {map[string]any{"a": "b"}, nil}, {map[string]any{"a": "b"}, map[string]any{}},
		{"a", map[string]any{}}, {map[string]any{}, "a"}, {[]any{}, "a"}, {"1Gi", "1G"},
	}
	for _, c := range different {
		if equivalent(c[0], c[1]) {
			t.Errorf("%v and %v are the same", c[0], c[1])
		}
	}
}

func TestFieldTrees(t *testing.T) {
	a := tree(t, `{"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}`)
	b := tree(t, `{"f:b": {"f:d": {}, "f:x": {}}, "f:e": {"k:{\"n\":2}": {".": {}}}}`)
	want := map[string]struct{ got, want map[string]any }{
		"minus":       {minus(a, b), tree(t, `{"f:a": {}, "f:b": {"f:c": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}`)},
		"minus all":   {minus(a, a), nil},
		"minus none":  {minus(b, nil), b},
		"union":       {union(a, b), tree(t, `{"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}, "f:x": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}, "k:{\"n\":2}": {".": {}}}}`)},
		"within":      {within(a, tree(t, `{"b": {"c": 1}, "e": [{"n": 1, "m": 2}]}`)), tree(t, `{"f:b": {".": {}, "f:c": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}`)},
		"within none": {within(a, nil), nil},
	}
	for name, c := range want {
		if diff := compare.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !overlap(a, b) || overlap(tree(t, `{"f:a": {}}`), b) || overlap(tree(t, `{"f:b": {".": {}, "f:q": {}}}`), tree(t, `{"f:b": {".": {}, "f:r": {}}}`)) {
		t.Error("overlap")
	}
}

// The server sends these trees; nothing that it could send may crash a pass.
func FuzzFieldTrees(f *testing.F) {
	f.Add(ownedService, liveService, desiredService)
	f.Add(`{"f:a": {"v:1": {}, "i:0": {}, "k:{": {}, "": {}, "v:": {}}}`, `{"a": [1, {}, null, []]}`, `{"a": [1, [2], {"b": null}]}`)
	f.Fuzz(func(t *testing.T, owned, live, desired string) {
		var o, l, d map[string]any
		if json.Unmarshal([]byte(owned), &o) != nil || json.Unmarshal([]byte(live), &l) != nil || json.Unmarshal([]byte(desired), &d) != nil {
			return
		}
		if fingerprint(o, l) != fingerprint(o, l) {
			t.Error("two fingerprints of one object")
		}
		holds(o, d, l)
		if rest := minus(o, o); rest != nil {
			t.Errorf("a tree without itself is %v", rest)
		}
		if rest := minus(within(o, l), o); rest != nil {
			t.Errorf("the part that exists is not a part: %v", rest)
		}
		overlap(o, within(o, d))
	})
}

// TestStatefulSetSaysWhetherItsClusterKnowsItsRoom: the API server fills the field in where it knows it.
func TestStatefulSetSaysWhetherItsClusterKnowsItsRoom(t *testing.T) {
	for rolling, want := range map[string]bool{`{"partition": 0}`: false, `{"partition": 0, "maxUnavailable": 1}`: true} {
		w, err := readStatefulSet(tree(t, `{"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": `+rolling+`}}}`))
		if err != nil {
			t.Fatal(err)
		}
		var seen rollout.ObservedWorkload
		if byOrdinals(w, &seen); seen.Room != want {
			t.Errorf("with %s it is said %t", rolling, seen.Room)
		}
	}
}

// TestStatefulSetIsBehindItsRevisions: a StatefulSet is not synced until the watch of revisions has its newest revision.
func TestStatefulSetIsBehindItsRevisions(t *testing.T) {
	w := &workload{replicas: 3, base: "db-1", update: "db-2"}
	for known, want := range map[string]bool{"db-1": false, "db-2": true} {
		seen := rollout.ObservedWorkload{Synced: true, Revisions: []rollout.Revision{{Name: known}}}
		if byOrdinals(w, &seen); seen.Synced != want {
			t.Errorf("with %s alone it is in step: %t", known, seen.Synced)
		}
	}
}
