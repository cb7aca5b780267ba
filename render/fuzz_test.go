package render

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/rollout"
)

// FuzzRollout reads any text as a Rollout document of an app that has a
// Deployment and Services: it gives a Render or an InvalidError, and no spec
// that breaks its own rules.
func FuzzRollout(f *testing.F) {
	seeds, err := filepath.Glob("testdata/invalid/rollout/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		archive, err := txtar.ParseFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		if doc, ok := archiveFiles(archive)["rollout.yaml"]; ok {
			f.Add(doc)
		}
	}
	base, err := txtar.ParseFile("testdata/invalid/rollout/base.txtar")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got := fuzzRender(t, with(archiveFiles(base), "rollout.yaml", doc+"\n"))
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

// FuzzRender builds any kustomization with any resource.
func FuzzRender(f *testing.F) {
	for _, pattern := range []string{"testdata/invalid/kustomize/*.txtar"} {
		seeds, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, seed := range seeds {
			archive, err := txtar.ParseFile(seed)
			if err != nil {
				f.Fatal(err)
			}
			files := archiveFiles(archive)
			f.Add(files["kustomization.yaml"], files["a.yaml"], files["t.yaml"])
		}
	}
	f.Fuzz(func(t *testing.T, kustomization, resource, other string) {
		fuzzRender(t, map[string]string{"kustomization.yaml": kustomization, "a.yaml": resource, "t.yaml": other,
			"b/kustomization.yaml": "resources: [a.yaml]\n", "b/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"})
	})
}

// fuzzRender renders twice, and returns nil for what is refused.
func fuzzRender(t *testing.T, files map[string]string) *rollout.Render {
	app := rollout.App{Name: "demo", Namespace: "shop"}
	got, err := New().Render(newTree(files), app, rollout.Commit{})
	again, errAgain := New().Render(newTree(files), app, rollout.Commit{})
	if err != nil {
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) || errAgain == nil || err.Error() != errAgain.Error() {
			t.Fatalf("errors %v and %v, want one InvalidError, always the same", err, errAgain)
		}
		if strings.Contains(err.Error(), "panics: runtime error") || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), mount) {
			t.Logf("message: %q", err)
		}
		return nil
	}
	if errAgain != nil || got.Digest != again.Digest {
		t.Fatalf("digests %s and %s, want one", got.Digest, again.Digest)
	}
	return got
}
