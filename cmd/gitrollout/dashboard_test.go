package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/views/dashboard"
)

func TestDashboardFlags(t *testing.T) {
	const issuer, site = "https://id.example.com", "https://r.example.com"
	for name, c := range map[string]struct {
		options dashOptions
		want    string // a part of the error text; "" for no error
	}{
		"Defaults":           {dashOptions{address: dashAddress}, ""},
		"Tokens":             {dashOptions{actions: true, tokens: "f"}, ""},
		"OIDC":               {dashOptions{actions: true, tokens: "f", issuer: issuer, client: "x", url: site}, ""},
		"ActionsForNobody":   {dashOptions{actions: true}, "--dashboard-tokens"},
		"TokensForNothing":   {dashOptions{tokens: "f"}, "--dashboard-actions"},
		"OIDCForNothing":     {dashOptions{issuer: issuer}, "--dashboard-actions"},
		"OIDCWithoutClient":  {dashOptions{actions: true, tokens: "f", issuer: issuer, url: site}, "--dashboard-oidc-client"},
		"OIDCWithoutAddress": {dashOptions{actions: true, tokens: "f", issuer: issuer, client: "x"}, "--dashboard-url"},
		"NoAddress":          {dashOptions{url: "rollouts"}, "--dashboard-url"},
		"OtherScheme":        {dashOptions{url: "javascript://x"}, "--dashboard-url"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.options.check()
			isWanted := err != nil && strings.Contains(err.Error(), c.want) && codeOf(err) == exitUsage
			if c.want == "" && err != nil || c.want != "" && !isWanted {
				t.Errorf("got %v, want one that names %q", err, c.want)
			}
		})
	}
}

// TestDashboardPortThatIsTaken checks that a dashboard port in use causes only a warning, and that an empty address causes none.
// The reconciler then runs without a dashboard.
func TestDashboardPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	var out bytes.Buffer
	// Without a loop, a dashboard that is served panics.
	stop, err := startDashboard(dashOptions{address: taken.Addr().String()}, nil,
		slog.New(slog.NewTextHandler(&out, nil)), streams{})
	must(t, err)
	stop()
	compare.Contains(t, out.String(), "level=WARN", "--dashboard-address")
	stop, err = startDashboard(dashOptions{}, nil, slog.New(slog.DiscardHandler), streams{})
	must(t, err)
	stop()
}

// TestDashboardStopsWhileBrowsersWatch checks that the dashboard's server can be stopped while a browser has an event stream open.
func TestDashboardStopsWhileBrowsersWatch(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	o := dashOptions{address: dashAddress}
	server, err := o.server(dashRecords(sourceOptions{}, &adapters.Repository{}, streams{}), dashboard.NewBoard("test", ""))
	must(t, err)
	stop := o.serve(listener, server, func(err error) { t.Error(err) })
	res, err := http.Get("http://" + listener.Addr().String() + "/api/v1/events")
	must(t, err)
	defer res.Body.Close()
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(5 * time.Minute):
		t.Error("it does not end")
	}
}

// TestOneMirror checks that the dashboard reads the loop's Git mirror. A diff on the dashboard makes one look-up of refs and no fetch.
func TestOneMirror(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	before := p.created.Stats()
	records := dashRecords(p.source, p.created, streams{out: io.Discard, err: io.Discard})
	if _, err := records.Diff(t.Context(), w.app); err != nil {
		t.Error(err)
	}
	if now := p.created.Stats(); now.Lookups != before.Lookups+1 || now.Fetches != before.Fetches {
		t.Errorf("before %+v, then %+v: want one look-up", before, now)
	}
}
