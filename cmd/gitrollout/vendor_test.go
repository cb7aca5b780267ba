package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVendorFrom rewrites a kustomization with the caller's paths, and accepts no other flag.
func TestVendorFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(text string) {
		if err := os.MkdirAll("apps/shop", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("apps/shop/kustomization.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	call := func(args ...string) (int, string) {
		var out strings.Builder
		return run(t.Context(), append([]string{"vendor"}, args...), nil, &out, &out), out.String()
	}
	write("resources:\n- https://github.com/org/repo//deploy/a\n")
	if code, out := call("--from", "apps/shop"); code != int(exitConfig) || !strings.Contains(out, "apps/shop/kustomization.yaml: resources[0]: https://github.com/org/repo//deploy/a names no tag") {
		t.Errorf("%d: %s", code, out)
	}
	write("resources:\n- https://github.com/org/repo//deploy/a?ref=v1\n")
	if code, out := call("--from", "apps/shop"); code != 0 || out != "kustomization.yaml: resources[0] is vendor/repo-deploy/a now\nnow: gitrollout vendor apps/shop\n" {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := call("--from", "apps/shop"); code != 0 || !strings.Contains(out, "names nothing elsewhere") {
		t.Errorf("%d: %s", code, out)
	}
	if text, err := os.ReadFile(filepath.Join("apps/shop/vendor.yaml")); err != nil || !strings.Contains(string(text), "- git:\n    path: deploy\n    ref: v1\n    url: https://github.com/org/repo\n  into: vendor/repo-deploy\n") {
		t.Errorf("%s, %v", text, err)
	}
	for _, args := range [][]string{{"--check"}, {"--update"}, {"apps"}} {
		if code, out := call(append(args, "--from", "apps/shop")...); code != int(exitUsage) {
			t.Errorf("%v: %d: %s", args, code, out)
		}
	}
	if code, _ := call("--from", "gone"); code == 0 {
		t.Error("a folder that is not there")
	}
}

// TestVendorFollowsNobody ignores a vendor.yaml in a vendored folder, and sends no request for it.
func TestVendorFollowsNobody(t *testing.T) {
	t.Chdir(t.TempDir())
	const mine = "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n- git: {url: /nowhere, ref: v1}\n  into: base\n"
	for file, text := range map[string]string{"infra/vendor.yaml": mine, "infra/base/deep/vendor.yaml": mine, "other/base/vendor.yaml": mine} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	code := run(t.Context(), []string{"vendor", "--check"}, nil, &out, &out)
	if text := out.String(); code == 0 || !strings.Contains(text, "infra/vendor.yaml: ") || !strings.Contains(text, "other/base/vendor.yaml: ") || strings.Contains(text, "deep") {
		t.Errorf("%d: %s", code, text)
	}
}
