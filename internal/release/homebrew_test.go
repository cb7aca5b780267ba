package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFormula makes a release for five platforms twice. Both releases must have equal checksums and formulas. The formula must equal
// testdata/gitrollout.rb, which has a file's name in place of each checksum.
func TestFormula(t *testing.T) {
	source := t.TempDir()
	programs := map[platform]string{}
	var platforms []platform
	for _, name := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		system, arch, _ := strings.Cut(name, "/")
		p := platform{system, arch}
		platforms, programs[p] = append(platforms, p), filepath.Join(source, system+arch)
		must(t, os.WriteFile(programs[p], []byte("program of "+name), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(source, "LICENSE"), []byte("license"), 0o600))
	var formulas, sums [2]string
	for i := range formulas {
		out := t.TempDir()
		r := &release{
			source: source, out: out, version: "v0.2.0", downloads: "https://downloads.example.com/gitrollout/v0.2.0",
			date: time.Unix(1_780_000_000, 0), platforms: platforms,
		}
		for _, write := range []func(map[platform]string) error{r.archives, r.writeFormula, r.writeSums} {
			must(t, write(programs))
		}
		formulas[i], sums[i] = readFile(t, filepath.Join(out, "gitrollout.rb")), readFile(t, filepath.Join(out, "checksums.txt"))
	}
	if formulas[0] != formulas[1] || sums[0] != sums[1] {
		t.Errorf("the second release differs:\n%s\n%s", sums[0], sums[1])
	}
	got := formulas[0]
	for line := range strings.Lines(sums[0]) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got = strings.ReplaceAll(got, sum, "the sum of "+file)
	}
	if *update {
		must(t, os.WriteFile("testdata/gitrollout.rb", []byte(got), 0o644))
	}
	if want := readFile(t, "testdata/gitrollout.rb"); got != want {
		t.Errorf("the formula is\n%s\nwant\n%s", got, want)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return string(data)
}
