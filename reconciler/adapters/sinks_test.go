package adapters_test

import (
	"context"
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/reconciler/report"
)

// TestTracers checks that each tracer gets the context that the previous tracer returned.
func TestTracers(t *testing.T) {
	type key string
	var told []string
	tracer := func(name string) report.Tracer {
		return func(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
			told = append(told, name+" begins "+string(part)+" "+app)
			return context.WithValue(ctx, key(name), true), func(err error) { told = append(told, name+" "+err.Error()) }
		}
	}
	if ctx, end := (&adapters.Sinks{}).Trace(t.Context(), report.PartApply, "shop"); ctx != t.Context() {
		t.Error("no tracer is one")
	} else {
		end(nil)
	}
	both := adapters.Sinks{Tracers: []report.Tracer{tracer("a"), tracer("b")}}
	ctx, end := both.Trace(t.Context(), report.PartApply, "shop")
	end(errors.New("no"))
	if ctx.Value(key("a")) == nil || ctx.Value(key("b")) == nil || len(told) != 4 || told[0] != "a begins apply shop" {
		t.Errorf("told %q", told)
	}
}
