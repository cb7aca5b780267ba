package rollout

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestCalendarsAreEqual checks that Equal compares all fields that affect a waiting release or its text.
func TestCalendarsAreEqual(t *testing.T) {
	until := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	calendar := func(change func(*Window, *Freeze)) Calendar {
		w, f := Window{Kind: Deny, Schedule: "0 0 * * *", Duration: time.Hour, TimeZone: "UTC", field: "windows[0]"}, Freeze{Reason: "x",
			Until: until, Apps: []string{"a"}}
		change(&w, &f)
		return Calendar{Windows: []Window{w}, Freeze: &f}
	}
	same := calendar(func(*Window, *Freeze) {})
	if !same.Equal(calendar(func(_ *Window, f *Freeze) { f.Until = until.In(time.FixedZone("", 3600)) })) || !(Calendar{}).Equal(Calendar{}) {
		t.Error("equal calendars differ")
	}
	for name, change := range map[string]func(*Window, *Freeze){
		"kind": func(w *Window, _ *Freeze) { w.Kind = Allow }, "schedule": func(w *Window, _ *Freeze) { w.Schedule = "1 0 * * *" },
		"duration": func(w *Window, _ *Freeze) { w.Duration++ }, "zone": func(w *Window, _ *Freeze) { w.TimeZone = "" },
		"place": func(w *Window, _ *Freeze) { w.field = "windows[1]" }, "reason": func(_ *Window, f *Freeze) { f.Reason = "y" },
		"until": func(_ *Window, f *Freeze) { f.Until = time.Time{} }, "apps": func(_ *Window, f *Freeze) { f.Apps = nil },
	} {
		if same.Equal(calendar(change)) {
			t.Errorf("another %s is the same", name)
		}
	}
	for _, other := range []Calendar{{}, {Windows: same.Windows}, {Freeze: same.Freeze}} {
		if same.Equal(other) || other.Equal(same) {
			t.Errorf("%+v is the same", other)
		}
	}
}

func TestTextOfAShutDoor(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m",
		61 * time.Second: "1m1s", time.Hour + time.Second: "1h0m1s", 10 * time.Hour: "10h"} {
		shut := Shut{Window: &Window{field: "windows[2]", Schedule: "0 0 * * *", TimeZone: "Europe/Berlin", Duration: d}}
		compare.Check(t, "the end of windows[2] (deny 0 0 * * * Europe/Berlin for "+want+")", shut.Cause())
	}
}
