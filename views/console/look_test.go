package console_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

// TestPanicOfALookIsShown checks that an app's row shows a panic in the code that determines the app's status. The
// Session has no dependencies, so each app causes a panic.
func TestPanicOfALookIsShown(t *testing.T) {
	w := &console.Session{
		Options: console.Options{Cluster: "test"}, Tip: &source.Branch{},
		Apps: map[string]rollout.App{"shop": {Name: "shop"}, "till": {Name: "till"}},
	}
	l, err := w.Listing(t.Context(), nil, time.Now())
	if err != nil || len(l.Apps) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, a := range l.Apps {
		if a.Held == nil || a.Held.Reason != "Panicked" || !strings.Contains(a.Held.Message, "nil pointer") {
			t.Errorf("%s is shown as %+v", a.App, a)
		}
	}
}
