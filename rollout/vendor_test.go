package rollout

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// TestVendorInto checks that vendored files go below the folder of vendor.yaml on every system, and not into files of
// Git or gitrollout.
func TestVendorInto(t *testing.T) {
	for into, want := range map[string]string{
		"charts": "", "a/b.c": "", "git": "", "a/.github/x": "", ".": "",
		"..": "is no folder", "../a": "is no folder", "/a": "is no folder", "a/../b": "is no folder", "a/./b": "is no folder",
		"a/": "is no folder", `a\b`: "is no folder", "C:/a": "is no folder", "a\x01": "is no folder", `a\..\..\b`: "is no folder",
		".git": "is in .git,", ".git/hooks": "is in .git,", "a/.GIT/b": "is in .GIT,", "a/.git. /b": "is in .git. ,", "git~1": "is in git~1,",
		".gitrollout/prod": "is in .gitrollout,", "GITROL~1/prod": "is in GITROL~1,", ".gitRollout.": "is in .gitRollout.,",
		"a/.g\u200cit/b": "is in .g",
		"git~1a":         "", "a/git~": "",
	} {
		_, err := ParseVendor("vendor.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n"+
			"- chart: {repo: https://example.com, name: a, version: 1.0.0}\n  into: "+strconv.Quote(into)+"\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", into, err, want)
		}
	}
}

// TestVendorCredentials checks that an address with a password is refused, and that the message does not contain it.
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
		_, err := ParseVendor("vendor.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n- "+source+"\n  into: a\n"))
		var invalid *InvalidError
		if errors.As(err, &invalid); field == "" && err != nil || field != "" && (invalid == nil || invalid.Field != field) {
			t.Errorf("%s: error %v, want an error of field %q", source, err, field)
		}
		if err != nil && (strings.Contains(err.Error(), "pass@") || strings.Contains(err.Error(), "p@ss")) {
			t.Errorf("the password is in the error %v", err)
		}
	}
}
