package render_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// FuzzRollout uses any text as the Rollout document of an app with a Deployment and Services. Render must return a
// valid Render, or an InvalidError.
func FuzzRollout(f *testing.F) {
	for _, files := range rejectedRepos(f, "rollout") {
		if doc, ok := files["rollout.yaml"]; ok {
			f.Add(doc)
		}
	}
	base := archiveFiles(f, "testdata/invalid/rollout/base.txtar")
	f.Fuzz(func(t *testing.T, doc string) {
		got := fuzzRender(t, with(base, "rollout.yaml", doc+"\n"))
		if got == nil {
			return
		}
		for _, s := range got.Specs {
			if (s.Canary == nil) == (s.BlueGreen == nil) || s.Scaling == "" || s.MinReadySeconds >= s.ProgressDeadlineSeconds {
				t.Errorf("spec breaks its rules: %+v", s)
			}
			if s.Canary == nil {
				continue
			}
			for i, step := range s.Canary.Steps {
				if w := step.SetWeight; w != nil && (*w < 0 || *w > 100) {
					t.Errorf("steps[%d] has weight %d", i, *w)
				}
			}
		}
	})
}

// FuzzRender builds any kustomization with any resource. Render must return a Render, or an InvalidError.
func FuzzRender(f *testing.F) {
	for _, files := range rejectedRepos(f, "kustomize") {
		f.Add(files["kustomization.yaml"], files["a.yaml"], files["t.yaml"])
	}
	f.Fuzz(func(t *testing.T, kustomization, resource, other string) {
		fuzzRender(t, map[string]string{"kustomization.yaml": kustomization, "a.yaml": resource, "t.yaml": other,
			"b/kustomization.yaml": "resources: [a.yaml]\n", "b/a.yaml": configMap("b")})
	})
}

// fuzzRender renders files twice and checks that the results are equal. If the files are refused, it returns nil.
func fuzzRender(t *testing.T, files map[string]string) *rollout.Render {
	got, err := rendered(files, demo)
	again, errAgain := rendered(files, demo)
	if err != nil {
		if !rollout.IsInvalid(err) || errAgain == nil || err.Error() != errAgain.Error() {
			t.Fatalf("errors %v and %v, want one InvalidError, always the same", err, errAgain)
		}
		if text := err.Error(); strings.Contains(text, "panics: runtime error") || strings.Contains(text, "\n") ||
			strings.Contains(text, "/repository-root") {
			t.Logf("message: %q", text)
		}
		return nil
	}
	if errAgain != nil || got.Digest != again.Digest {
		t.Fatalf("digests %s and %s, want one", got.Digest, again.Digest)
	}
	return got
}

// FuzzAnyField replaces any field of an app's objects by any value. Render must build or refuse the app, and must not panic.
func FuzzAnyField(f *testing.F) {
	const objects = `[
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop","labels":{"a":"b"}},"spec":{"replicas":2,"minReadySeconds":1,
"selector":{"matchLabels":{"app":"shop"}},"strategy":{"rollingUpdate":{"maxSurge":"25%"}},"template":{"metadata":{"labels":{"app":"shop"}},
"spec":{"containers":[{"name":"app","image":"shop:v1","ports":[{"containerPort":80}],
"resources":{"limits":{"memory":"1Gi"}},"env":[{"name":"A","value":"b"}]}]}}}},
{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop"},"spec":{"selector":{"app":"shop"},"ports":[{"port":80}]}},
{"apiVersion":"v1","kind":"Service","metadata":{"name":"preview"},"spec":{"selector":{"app":"shop"},"ports":[{"port":80}]}},
{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"shop"},
"spec":{"rules":[{"host":"a.example","http":{"paths":[{"path":"/","pathType":"Prefix",
"backend":{"service":{"name":"shop","port":{"number":80}}}}]}}]}},
{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"shop"},"spec":{"minReplicas":1,"maxReplicas":3,
"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"shop"}}},
{"apiVersion":"gitrollout.dev/v1alpha1","kind":"AnalysisTemplate","metadata":{"name":"load"},"spec":{"args":[{"name":"a","value":"b"}],
"metrics":[{"name":"load","interval":"10s","count":3,"successCondition":"result < 1",
"provider":{"web":{"url":"http://a.example","jsonPath":"{$.a}"}}}]}},
{"apiVersion":"gitrollout.dev/v1alpha1","kind":"Rollout","metadata":{"name":"shop"},
"spec":{"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"shop"},"strategy":{
"canary":{"stableService":"shop","canaryService":"preview","trafficRouting":{"nginx":{"stableIngress":"shop"}},
"steps":[{"setWeight":20},{"pause":{"duration":"10m"}},{"analysis":{"templates":[{"templateName":"load"}]}}]}}}}]`
	for at := range 120 {
		for i, value := range []string{`{"a":{"b":1}}`, `[[]]`, `"x"`, `-1e308`, `null`, `true`} {
			if !testing.Short() || (at+i)%6 == 0 { // with -short, one value per field
				f.Add(at, value)
			}
		}
	}
	f.Fuzz(func(t *testing.T, at int, value string) {
		var app []any
		var put any
		if json.Unmarshal([]byte(value), &put) != nil {
			return
		}
		must(t, json.Unmarshal([]byte(objects), &app))
		at = max(at, 0) % 400
		spoil(app, &at, put)
		var text strings.Builder
		for _, o := range app {
			data, err := json.Marshal(o)
			must(t, err)
			text.WriteString("---\n" + string(data) + "\n")
		}
		files := map[string]string{"kustomization.yaml": "resources: [all.yaml]\n", "all.yaml": text.String()}
		builder := render.InProcess{CheckProvider: func(string, map[string]any) error { return nil }}
		_, err := render.New(builder).Render(newTree(files), demo, rollout.Commit{})
		if err != nil && (!rollout.IsInvalid(err) ||
			strings.Contains(err.Error(), "runtime error") && !strings.Contains(err.Error(), "kustomize panics")) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}

// spoil replaces the n-th value, where n is *at. It counts values depth first, and a mapping's keys in sorted order.
func spoil(node any, at *int, value any) any {
	if *at--; *at == -1 {
		return value
	}
	switch n := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			n[key] = spoil(n[key], at, value)
		}
	case []any:
		for i := range n {
			n[i] = spoil(n[i], at, value)
		}
	}
	return node
}
