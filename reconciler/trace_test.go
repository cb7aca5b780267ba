package reconciler

import (
	"testing"

	"gitrollout.dev/gitrollout/reconciler/report"
)

// TestNoTracerCostsNothing bounds the cost of a part without tracing.
func TestNoTracerCostsNothing(t *testing.T) {
	r := New(Options{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		_, end := r.begin(ctx, report.PartApply, "shop")
		end(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNoTracer(b *testing.B) {
	r := New(Options{})
	ctx := b.Context()
	for b.Loop() {
		_, end := r.begin(ctx, report.PartApply, "shop")
		end(nil)
	}
}
