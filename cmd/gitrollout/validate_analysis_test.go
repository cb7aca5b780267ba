package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/rollout"
)

// TestValidateRefusesTemplates checks that validate refuses the invalid analyses in package render's test data, without a network.
func TestValidateRefusesTemplates(t *testing.T) {
	t.Parallel()
	const folder = "../../render/testdata/invalid/analysis/"
	base, err := txtar.ParseFile(folder + "base.txtar")
	must(t, err)
	files, err := filepath.Glob(folder + "*.txtar")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d archives, %v", len(files), err)
	}
	for i, file := range files {
		if filepath.Base(file) == "base.txtar" || testing.Short() && i%6 > 0 {
			continue
		}
		archive, err := txtar.ParseFile(file)
		must(t, err)
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, rollout.ConfigPath("prod")), configOf("shop", "- path: apps/demo"))
		for _, f := range append(base.Files, archive.Files...) {
			writeFile(t, filepath.Join(dir, "apps/demo", f.Name), string(f.Data))
		}
		_, want, _ := strings.Cut(string(archive.Comment), "want: ")
		var out, errs strings.Builder
		code := run(t.Context(), []string{"validate", dir, "-o", "json"}, strings.NewReader(""), &out, &errs)
		var got struct {
			Clusters []struct {
				Apps []struct {
					Error *struct{ File, Field, Message, Fix, Also string }
				}
			}
		}
		err = json.Unmarshal([]byte(out.String()), &got)
		if err != nil || len(got.Clusters) != 1 || len(got.Clusters[0].Apps) != 1 || got.Clusters[0].Apps[0].Error == nil {
			t.Errorf("%s: exit code %d, %v:\n%s%s", filepath.Base(file), code, err, out.String(), errs.String())
			continue
		}
		e := got.Clusters[0].Apps[0].Error
		parts := []string{strings.TrimPrefix(e.File, "apps/demo/"), e.Field, e.Message}
		message := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
		if e.Fix != "" {
			message += "; " + e.Fix
		}
		message += e.Also
		if code != int(exitFailed) || !strings.HasPrefix(e.File, "apps/demo/") || message != strings.TrimSpace(want) {
			t.Errorf("%s: exit code %d\n got: %s\nwant: %s", filepath.Base(file), code, message, want)
		}
	}
}
