package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the chart's files that follow from others")

// TestChartFiles checks that the chart's generated files (settings, schema, table and rules) are up to date with values.go and
// deploy/kubernetes.
func TestChartFiles(t *testing.T) {
	files, err := chartFiles("../..")
	must(t, err)
	for name, want := range files {
		path := filepath.Join("../../deploy/chart", name)
		if *update {
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(want), 0o644))
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s does not follow from internal/release/values.go and deploy/kubernetes (%v): go test -update writes it", path, err)
		}
	}
}
