package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestVendorFrom checks that vendor --from rewrites a kustomization, and refuses all other arguments. Paths in errors are relative to the
// current folder.
func TestVendorFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = "apps/shop/kustomization.yaml"
	call := func(want exitCode, args ...string) string {
		t.Helper()
		return wantExit(t, want, append([]string{"vendor", "--from", "apps/shop"}, args...)...)
	}
	writeFile(t, file, "resources:\n- https://github.com/org/repo//deploy/a\n")
	compare.Contains(t, call(exitConfig), file+": resources[0]: https://github.com/org/repo//deploy/a names no tag")
	writeFile(t, file, "resources:\n- https://github.com/org/repo//deploy/a?ref=v1\n")
	compare.Check(t, "kustomization.yaml: resources[0] is vendor/repo-deploy/a now\nnow: gitrollout vendor apps/shop\n", call(exitOK))
	compare.Contains(t, call(exitOK), "no remote sources to add to vendor.yaml")
	text, err := os.ReadFile("apps/shop/vendor.yaml")
	must(t, err)
	compare.Contains(t, string(text),
		"- git:\n    path: deploy\n    ref: v1\n    url: https://github.com/org/repo\n  into: vendor/repo-deploy\n")
	for _, other := range []string{"--check", "--update", "apps"} {
		call(exitUsage, other)
	}
	if code := run(t.Context(), []string{"vendor", "--from", "gone"}, nil, io.Discard, io.Discard); code == 0 {
		t.Error("a folder that is not there")
	}
}

// TestVendorFollowsNobody checks that a vendor.yaml inside a vendored folder is ignored: the sources in this file are not requested.
func TestVendorFollowsNobody(t *testing.T) {
	t.Chdir(t.TempDir())
	const mine = "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n- git: {url: /nowhere, ref: v1}\n  into: base\n"
	for _, file := range []string{"infra/vendor.yaml", "infra/base/deep/vendor.yaml", "other/base/vendor.yaml"} {
		writeFile(t, file, mine)
	}
	var out strings.Builder
	code := run(t.Context(), []string{"vendor", "--check"}, nil, &out, &out)
	compare.Contains(t, out.String(), "infra/vendor.yaml: ", "other/base/vendor.yaml: ")
	if code == 0 || strings.Contains(out.String(), "deep") {
		t.Errorf("%d: %s", code, &out)
	}
}
