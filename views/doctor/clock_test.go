package doctor

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestClocks compares clocks by a server's answers.
func TestClocks(t *testing.T) {
	here := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		date string
		want Health
	}{
		"right":       {here.Format(http.TimeFormat), Healthy},
		"a bit late":  {here.Add(-20 * time.Second).Format(http.TimeFormat), Warning},
		"an hour off": {here.Add(time.Hour).Format(http.TimeFormat), Problem},
		"no date":     {"never", Unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", tt.date) }))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			var e Examination
			Clock(&e, "clock.git", "the server", server.Client(), request, func() time.Time { return here })
			if len(e.Findings) != 1 || e.Findings[0].Status != tt.want {
				t.Errorf("%+v, want %s", e.Findings, tt.want)
			}
		})
	}
}
