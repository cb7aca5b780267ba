package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// tree decodes a JSON object. All numbers become float64.
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

// TestFingerprintSeesOwnedFieldsOnly checks that the fingerprint of a live object changes with each owned field, and with no other field.
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
	if !holds(tree(t, ownedService), tree(t, desiredService)) {
		t.Fatal("the applied fields do not hold")
	}
	edits := map[string]func(owned, desired map[string]any){
		"a field that is not ours":  func(o, _ map[string]any) { delete(o, "f:metadata") },
		"an element that is gone":   func(o, _ map[string]any) { delete(dig(o, "f:spec", "f:ports"), `k:{"port":80,"protocol":"TCP"}`) },
		"a list that is gone":       func(o, _ map[string]any) { delete(dig(o, "f:spec"), "f:finalizers") },
		"a field of an element":     func(_, d map[string]any) { port(d, 0)["targetPort"] = 8080.0 },
		"a list that was a scalar":  func(_, d map[string]any) { dig(d, "spec")["ports"] = "none" },
		"an element that Git drops": func(_, d map[string]any) { dig(d, "spec")["ports"] = ports(d)[:1] },
		"a new field in Git":        func(_, d map[string]any) { dig(d, "spec")["type"] = "NodePort" },
		"a new element in Git":      func(_, d map[string]any) { dig(d, "spec")["ports"] = append(ports(d), map[string]any{"port": 1.0}) },
		"a field that Git does not have": func(o, _ map[string]any) {
			dig(o, "f:metadata", "f:labels")["f:old"] = map[string]any{}
		},
	}
	for name, edit := range edits {
		owned, desired := tree(t, ownedService), tree(t, desiredService)
		edit(owned, desired)
		if holds(owned, desired) {
			t.Errorf("holds in spite of %s", name)
		}
	}
}

func TestFieldTrees(t *testing.T) {
	a := tree(t, `{"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}`)
	b := tree(t, `{"f:b": {"f:d": {}, "f:x": {}}, "f:e": {"k:{\"n\":2}": {".": {}}}}`)
	want := map[string]struct{ got, want map[string]any }{
		"minus":      {difference(a, b), tree(t, `{"f:a": {}, "f:b": {".": {}, "f:c": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}`)},
		"minus all":  {difference(a, a), nil},
		"minus none": {difference(b, nil), b},
		"union": {union(a, b), tree(t, `{"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}, "f:x": {}}, "f:e": {"k:{\"n\":1}": {".": {}, `+
			`"f:n": {}}, "k:{\"n\":2}": {".": {}}}}`)},
		"within": {existing(a, tree(t, `{"b": {"c": 1}, "e": [{"n": 1, "m": 2}]}`)),
			tree(t, `{"f:b": {".": {}, "f:c": {}}, "f:e": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}`)},
		"within none": {existing(a, nil), nil},
		"dropped": {dropped(a, tree(t, `{"b": {"c": 1}, "e": [{"n": 2}]}`)),
			tree(t, `{"f:a": {}, "f:b": {"f:d": {}}, "f:e": {"k:{\"n\":1}": {}}}`)},
		"dropped map": {dropped(a, tree(t, `{"a": 1, "e": [{"n": 1}]}`)), tree(t, `{"f:b": {"f:c": {}, "f:d": {}}}`)},
		"dropped UDP": {dropped(tree(t, ownedService), tree(t, `{"metadata": {"labels": {"app": 1}}, `+
			`"spec": {"selector": 1, "finalizers": ["x"], "ports": [{"port": 80, "name": "a"}, {"port": 53}]}}`)),
			tree(t, `{"f:spec": {"f:ports": {"k:{\"port\":53,\"protocol\":\"UDP\"}": {}}}}`)},
	}
	for name, c := range want {
		compare.CheckNamed(t, name, c.want, c.got)
	}
	if !overlap(a, b) || overlap(tree(t, `{"f:a": {}}`), b) ||
		overlap(tree(t, `{"f:b": {".": {}, "f:q": {}}}`), tree(t, `{"f:b": {".": {}, "f:r": {}}}`)) {
		t.Error("overlap")
	}
}

// FuzzFieldTrees checks that the functions for field trees never panic, even for trees that no API server sends. A tree minus itself must
// be empty.
func FuzzFieldTrees(f *testing.F) {
	f.Add(ownedService, liveService, desiredService)
	f.Add(`{"f:a": {"v:{\"port\":80}": {}}}`, `{"a": [{"port": 80}]}`, `{"a": [{"port": 80}]}`)
	f.Add(`{"f:a": {"v:1": {}, "i:0": {}, "k:{": {}, "": {}, "v:": {}}}`, `{"a": [1, {}, null, []]}`, `{"a": [1, [2], {"b": null}]}`)
	f.Fuzz(func(t *testing.T, owned, live, desired string) {
		var o, l, d map[string]any
		if json.Unmarshal([]byte(owned), &o) != nil || json.Unmarshal([]byte(live), &l) != nil || json.Unmarshal([]byte(desired), &d) != nil {
			return
		}
		if fingerprint(o, l) != fingerprint(o, l) {
			t.Error("two fingerprints of one object")
		}
		holds(o, d)
		if rest := difference(o, o); rest != nil {
			t.Errorf("a tree without itself is %v", rest)
		}
		if rest := difference(existing(o, l), o); rest != nil {
			t.Errorf("the part that exists is not a part: %v", rest)
		}
		overlap(o, existing(o, d))
	})
}

// TestStatefulSetSaysWhetherItsClusterKnowsItsRoom checks that Room is true only if the live object has maxUnavailable.
// An API server drops this field if its feature gate is off.
func TestStatefulSetSaysWhetherItsClusterKnowsItsRoom(t *testing.T) {
	for rolling, want := range map[string]bool{`{"partition": 0}`: false, `{"partition": 0, "maxUnavailable": 1}`: true} {
		w, err := readStatefulSet(tree(t, `{"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": `+rolling+`}}}`))
		must(t, err)
		var seen rollout.ObservedWorkload
		if byOrdinals(w, &seen); seen.Room != want {
			t.Errorf("with %s it is said %t", rolling, seen.Room)
		}
	}
}

// TestDeploymentIsBehindItsReplicaSets checks that a Deployment counts as synced only when the watch has shown its
// template's ReplicaSet. A paused Deployment is synced without a ReplicaSet, because the controller creates none.
func TestDeploymentIsBehindItsReplicaSets(t *testing.T) {
	kinds := newWorkloads(func(string) {})
	table := kinds.kinds[slices.Index(workloadKinds, &deployments)]
	for name, tc := range map[string]struct {
		paused, known, want bool
	}{
		"not seen yet": {false, false, false},
		"seen":         {false, true, true},
		"paused":       {true, false, true},
	} {
		o := tree(t, fmt.Sprintf(`{"metadata": {"annotations": {"%s": "1"}, "generation": 1}, "spec": {"paused": %t},
			"status": {"observedGeneration": 1}}`, revisionAnnotation, tc.paused))
		w, err := readDeployment(o)
		must(t, err)
		uid := types.UID(name)
		if tc.known {
			table.revisions.put(&revision{number: 1, stamp: stamp{key: key{name: "web-a"}, uid: "set", owner: uid, version: "1"}})
		}
		if seen := kinds.observe(table, &live{stamp: stamp{uid: uid}, workload: w}); seen.Synced != tc.want {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}

// TestStatefulSetIsBehindItsRevisions checks that a StatefulSet counts as synced only when the watch has shown its update revision.
func TestStatefulSetIsBehindItsRevisions(t *testing.T) {
	w := &workload{replicas: 3, base: "db-1", update: "db-2"}
	for known, want := range map[string]bool{"db-1": false, "db-2": true} {
		seen := rollout.ObservedWorkload{Synced: true, Revisions: []rollout.Revision{{Name: known}}}
		if byOrdinals(w, &seen); seen.Synced != want {
			t.Errorf("with %s alone it is in step: %t", known, seen.Synced)
		}
	}
}
