package reconciler

import (
	"context"
	"errors"
	"testing"
)

// TestTracers tells several, each in the context of the one before it.
func TestTracers(t *testing.T) {
	type key string
	var told []string
	tracer := func(name string) Tracer {
		return func(ctx context.Context, part Part, app string) (context.Context, func(error)) {
			told = append(told, name+" begins "+string(part)+" "+app)
			return context.WithValue(ctx, key(name), true), func(err error) { told = append(told, name+" "+err.Error()) }
		}
	}
	if Tracers(nil, nil) != nil {
		t.Error("no tracer is one")
	}
	ctx, end := Tracers(nil, tracer("a"), tracer("b"))(t.Context(), PartApply, "shop")
	end(errors.New("no"))
	if ctx.Value(key("a")) == nil || ctx.Value(key("b")) == nil || len(told) != 4 || told[0] != "a begins apply shop" {
		t.Errorf("told %q", told)
	}
}

// TestNoTracerCostsNothing bounds what a part costs while nobody traces.
func TestNoTracerCostsNothing(t *testing.T) {
	r := New(Options{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		_, end := r.begin(ctx, PartApply, "shop")
		end(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNoTracer(b *testing.B) {
	r := New(Options{})
	ctx := b.Context()
	for b.Loop() {
		_, end := r.begin(ctx, PartApply, "shop")
		end(nil)
	}
}
