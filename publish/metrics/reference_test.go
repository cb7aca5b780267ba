package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

var update = flag.Bool("update", false, "write the reference anew")

const referencePage = "../../docs/reference/metrics.md"

func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Written by go test ./metrics -run TestReference -update. -->

Served by ` + "`gitrollout run`" + ` at ` + "`--metrics-address`" + `, path ` + "`/metrics`" + `. [Monitoring](../monitoring.md) explains
their use. Times are seconds since 1970, durations are seconds, shares are from 0 to 1. Counters
begin at 0 when the process starts; durations come from the times that Git has on record, so
they include releases from before the start.

There is one series for each set of labels. Those with the label ` + "`app`" + ` grow with the number of
apps: ` + "`gitrollout_app_phase`" + ` has one for each, ` + "`gitrollout_releases_total`" + ` four for each app that has had a
release since the start, and the others exist only while their condition lasts.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	for _, f := range newTest(t).Families() {
		labels := ""
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, labels, f.Help)
	}
	b.WriteString("\nBesides these, `go_` and `process_`: what the Go runtime and the operating system say of the process.\n")
	want := b.String()
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	compare.CheckNamed(t, referencePage+", which go test -update rewrites,", want, string(got))
}
