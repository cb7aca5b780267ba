package adapters_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/reconciler/adapters"
)

// TestWorkThatHangsIsGivenUp checks when Supervised returns while work still runs: when hung() reports a problem, or
// some time after the end of the context.
func TestWorkThatHangsIsGivenUp(t *testing.T) {
	forEver := func(context.Context) error { select {} }
	late := func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(adapters.Grace)
		return io.EOF
	}
	for name, tt := range map[string]struct {
		work    func(context.Context) error
		hungAt  time.Duration // 0: never
		stopAt  time.Duration
		within  time.Duration
		message string
	}{
		"it ends":              {func(context.Context) error { return io.EOF }, 0, time.Hour, 0, "EOF"},
		"it hangs":             {forEver, time.Minute, time.Hour, 70 * time.Second, "app web"},
		"it gets on":           {func(ctx context.Context) error { <-ctx.Done(); return nil }, 0, time.Hour, time.Hour, ""},
		"it is told to end":    {late, 0, time.Minute, 80 * time.Second, "EOF"},
		"it does not end then": {forEver, 0, time.Minute, 85 * time.Second, "did not end within 25s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), tt.stopAt)
				defer stop()
				work := tt.work
				if tt.message != "EOF" && tt.message != "" { // synctest.Test waits for all goroutines, so this work must end
					over := make(chan struct{})
					defer close(over)
					work = func(context.Context) error { <-over; return nil }
				}
				began := time.Now()
				err := adapters.Supervised(10*time.Second, func() string {
					if tt.hungAt > 0 && time.Since(began) >= tt.hungAt {
						return "app web"
					}
					return ""
				}, work)(ctx)
				took := time.Since(began)
				if took > tt.within || (err == nil) != (tt.message == "") || err != nil && !strings.Contains(err.Error(), tt.message) {
					t.Errorf("after %s: %v; want within %s: %s", took, err, tt.within, tt.message)
				}
			})
		})
	}
}
