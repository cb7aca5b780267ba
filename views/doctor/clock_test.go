package doctor_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/views/doctor"
)

// dated returns a server that sends the given text in the header Date.
func dated(t *testing.T, date string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", date) }))
	t.Cleanup(server.Close)
	return server
}

func TestClocks(t *testing.T) {
	here := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		date string
		want doctor.Health
	}{
		"right":       {here.Format(http.TimeFormat), doctor.Healthy},
		"a bit late":  {here.Add(-20 * time.Second).Format(http.TimeFormat), doctor.Warning},
		"an hour off": {here.Add(time.Hour).Format(http.TimeFormat), doctor.Problem},
		"a second":    {here.Add(-4 * time.Second).Format(http.TimeFormat), doctor.Healthy},
		"5 s":         {here.Add(-5 * time.Second).Format(http.TimeFormat), doctor.Warning},
		"5 s ahead":   {here.Add(4 * time.Second).Format(http.TimeFormat), doctor.Warning},
		"59 s":        {here.Add(-59 * time.Second).Format(http.TimeFormat), doctor.Warning},
		"a minute":    {here.Add(-60 * time.Second).Format(http.TimeFormat), doctor.Problem},
		"no date":     {"never", doctor.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			server := dated(t, tt.date)
			var e doctor.Examination
			doctor.Clock(t.Context(), &e, "clock.git", "the server", server.Client(), server.URL, func() time.Time { return here })
			if len(e.Findings) != 1 || e.Findings[0].Status != tt.want {
				t.Errorf("%+v, want %s", e.Findings, tt.want)
			}
		})
	}
}

// TestClockOfASlowServer checks that Clock compares Date with the time halfway through the request. If the server does
// not respond, the finding's status is Unknown.
func TestClockOfASlowServer(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	server := dated(t, at.Format(http.TimeFormat))
	clock := at.Add(-50 * time.Second)
	now := func() time.Time { clock = clock.Add(20 * time.Second); return clock }
	var e doctor.Examination
	for _, address := range []string{server.URL, "http://127.0.0.1:1"} {
		doctor.Clock(t.Context(), &e, "clock.git", "the server", server.Client(), address, now)
	}
	const apart = "the clocks of this machine and of the server are 21s apart"
	if len(e.Findings) != 2 || e.Findings[0].Message != apart || e.Findings[1].Status != doctor.Unknown {
		t.Errorf("%+v", e.Findings)
	}
}

// TestAFindingIsOneLine checks that a finding's message has no newlines, tabs or terminal escape sequences.
func TestAFindingIsOneLine(t *testing.T) {
	var e doctor.Examination
	e.Add("cluster", doctor.Problem, "", "it does not answer: %v", errors.New("first\n\tsecond \x1b]0;owned\a"))
	compare.Check(t, "it does not answer: first second ]0;owned", e.Findings[0].Message)
}
