package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/metrics"
)

var update = flag.Bool("update", false, "write the reference anew")

const referencePage = "../../docs/reference/metrics.md"

func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Written by go test ./publish/metrics -run TestReference -update. -->

` + "`gitrollout run`" + ` serves these metrics at ` + "`--metrics-address`" + `, path ` + "`/metrics`" + `.
[Monitoring](../monitoring.md) explains their use. Times are seconds since 1970, durations are seconds, weights are from 0 to 1.
Counters begin at 0 when the process starts. Durations of releases use the times that Git has on
record, so they include time before the start.

Each set of labels is one series. The number of series with the label ` + "`app`" + ` grows with the number of
apps: ` + "`gitrollout_app_phase`" + ` has one per app, ` + "`gitrollout_releases_total`" + ` four and ` + "`gitrollout_break_glass_total`" + ` one per
app with a release since the start. The other series with ` + "`app`" + ` exist only while their condition lasts.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	for _, f := range metrics.ReadFamilies() {
		labels := ""
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, kindOf(f), labels, f.Help)
	}
	b.WriteString("\nThe Go runtime adds metrics that begin with `go_`, the operating system metrics that begin with `process_`.\n")
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
