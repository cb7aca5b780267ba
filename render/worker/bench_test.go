package worker_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// BenchmarkWarm builds an app of typical size alternately in this process and in a warm worker. It reports the ratio of the median times.
func BenchmarkWarm(b *testing.B) {
	tree := archive(b, "testdata/app.txtar")
	app := rollout.App{Name: "shop", Path: "prod", Namespace: "shop"}
	workers := pool(b, 1)
	sides := []render.Builder{render.InProcess{CheckProvider: provider.Check}, workers}
	took := make([][]time.Duration, len(sides))
	build := func() {
		for i, side := range sides {
			began := time.Now()
			_, _, err := side.Build(tree, app)
			must(b, err)
			took[i] = append(took[i], time.Since(began))
		}
	}
	for range 20 {
		build()
	}
	clear(took)
	for b.Loop() {
		build()
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return took[i][len(took[i])/2].Seconds() * 1000
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", workers.Resting()[0].Pid))
	must(b, err)
	var pages [3]int // total size, resident memory, and the shared part of the resident memory
	_, err = fmt.Sscan(string(statm), &pages[0], &pages[1], &pages[2])
	must(b, err)
	b.ReportMetric(float64((pages[1]-pages[2])*os.Getpagesize())/(1<<20), "MiB/worker")
	b.ReportMetric(median(0), "ms/here")
	b.ReportMetric(median(1), "ms/worker")
	b.ReportMetric(median(1)/median(0), "worker/here")
}
