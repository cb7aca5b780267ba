package rollout_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const vendorHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n"

// TestVendorInto checks that the field `into` must be, on every operating system, a path below the folder of vendor.yaml. It must not lead
// into a folder that Git or gitrollout uses. Only a chart may be in the folder of vendor.yaml itself.
func TestVendorInto(t *testing.T) {
	in := func(part string) string {
		return " is in " + part + ", which is not for vendored files; name another folder"
	}
	const none = " is not a folder beside vendor.yaml; write a path without .., and without a slash at either end"
	for into, want := range map[string]string{
		"charts": "", "a": "", "a/b.c": "", "git": "", "a/.github/x": "", "..a": "", ".": "",
		"..": none, "../a": none, "/a": none, "a/../b": none, "a/./b": none, "./a": none, "a/": none,
		`a\b`: none, "C:/a": none, "a\x01": none, `a\..\..\b`: none,
		".git": in(".git"), ".git/hooks": in(".git"), "a/.GIT/b": in(".GIT"), "a/.git. /b": in(".git. "), "git~1": in("git~1"),
		".gitrollout/prod": in(".gitrollout"), "GITROL~1/prod": in("GITROL~1"), ".gitRollout.": in(".gitRollout."),
		"a/.g\u200cit/b": in(".g\u200cit"), "git~1a": "", "a/git~": "",
	} {
		for kind, source := range map[string]string{
			"git": "git: {url: https://example.com/r, ref: v1}", "chart": "chart: {repo: https://example.com, name: c, version: ~1.0}",
		} {
			text := strconv.Quote(into)
			_, err := rollout.ParseVendor("vendor.yaml", []byte(vendorHead+"- {"+source+", into: ok}\n- {"+source+", into: "+text+"}\n"))
			want := want
			if into == "." && kind == "git" {
				want = none
			}
			if (err == nil) != (want == "") || err != nil && err.Error() != "vendor.yaml: sources[1].into: "+text+want {
				t.Errorf("%s into %q: error %v, want %q", kind, into, err, want)
			}
		}
	}
	if _, err := rollout.ParseVendor("vendor.yaml", []byte("kind: Config\n")); err == nil {
		t.Error("another kind is read")
	}
}

func TestNamesOfVendorSources(t *testing.T) {
	for want, s := range map[string]rollout.VendorSource{
		"n: chart r n ~1": {Into: "x/y", Chart: &rollout.VendorChart{Repo: "r", Name: "n", Version: "~1"}},
		"y: git u v1 p":   {Into: "x/y", Git: &rollout.VendorGit{URL: "u", Ref: "v1", Path: "p"}},
		"y: oci u t":      {Into: "x/y", OCI: &rollout.VendorOCI{URL: "u", Tag: "t"}},
		"z: oci u ~1":     {Into: "z", OCI: &rollout.VendorOCI{URL: "u", Semver: "~1"}},
	} {
		compare.Check(t, want, s.Name()+": "+s.Wants())
	}
}

// TestVendorCredentials checks that an address with a password is refused, with an error that does not contain the password.
func TestVendorCredentials(t *testing.T) {
	for source, field := range map[string]string{
		"chart: {repo: https://ann:pass@example.com/x, name: a, version: 1.0.0}": "sources[0].chart.repo",
		"chart: {repo: oci://pass@example.com/x, name: a, version: 1.0.0}":       "sources[0].chart.repo",
		"git: {url: https://ann:pass@example.com/x, ref: v1}":                    "sources[0].git.url",
		"git: {url: 'https://ann:p@ss@example.com/x', ref: v1}":                  "sources[0].git.url",
		"oci: {url: oci://ann:pass@example.com/x, tag: v1}":                      "sources[0].oci.url",
		"git: {url: ssh://git@example.com/x, ref: v1}":                           "",
		"git: {url: git@example.com:x, ref: v1}":                                 "",
		"git: {url: https://example.com:8443/x@y:z, ref: v1}":                    "",
		"chart: {repo: https://example.com:8443/a@b, name: a, version: 1.0.0}":   "",
	} {
		_, err := rollout.ParseVendor("vendor.yaml", []byte(vendorHead+"- "+source+"\n  into: a\n"))
		var invalid *rollout.InvalidError
		if errors.As(err, &invalid); field == "" && err != nil || field != "" && (invalid == nil || invalid.Field != field) {
			t.Errorf("%s: error %v, want an error of field %q", source, err, field)
		}
		if err != nil && (strings.Contains(err.Error(), "pass@") || strings.Contains(err.Error(), "p@ss")) {
			t.Errorf("the password is in the error %v", err)
		}
	}
}
