package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// openOutside parses flags as gitrollout run does, and starts the servers for metrics, probes and profiles.
func openOutside(t *testing.T, log io.Writer, args ...string) (*outside, error) {
	t.Helper()
	var options observeOptions
	cmd := &cobra.Command{}
	options.register(cmd)
	must(t, cmd.ParseFlags(args))
	seen, err := options.open(slog.New(slog.NewTextHandler(log, nil)), false)
	if err == nil {
		t.Cleanup(seen.stop)
	}
	return seen, err
}

func answer(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// TestProbes checks that a process is live from its start until its loop hangs. The process is ready after it has read the cluster and Git.
func TestProbes(t *testing.T) {
	seen := &outside{log: slog.New(slog.DiscardHandler)}
	probe := func(ready int, says string) {
		t.Helper()
		if code, _ := answer(t, seen.handler(), "/healthz"); code != 200 {
			t.Errorf("healthz is %d", code)
		}
		if code, body := answer(t, seen.handler(), "/readyz"); code != ready || !strings.Contains(body, says) {
			t.Errorf("readyz is %d %q, want %d %q", code, body, ready, says)
		}
	}
	fetched := func(err error) {
		_, end := seen.noteFetch(t.Context(), "fetch", "")
		end(err)
	}
	probe(503, "the cluster is being read")
	if code, body := answer(t, seen.handler(), "/metrics"); code != 503 || !strings.Contains(body, "not ready") {
		t.Errorf("metrics before there are any: %d %q", code, body)
	}
	seen.synced.Store(true)
	probe(503, "Git has not been read")
	fetched(io.ErrUnexpectedEOF)
	probe(503, "Git has not been read")
	fetched(nil)
	probe(200, "ok")
	fetched(io.ErrUnexpectedEOF) // if Git fails later, the process stays ready
	probe(200, "ok")
	seen.hung.Store(func() string { return "no sign of life for 5m0s from: app web" })
	if code, body := answer(t, seen.handler(), "/healthz"); code != 503 || !strings.Contains(body, "app web") {
		t.Errorf("healthz of a loop that hangs is %d %q", code, body)
	}
}

func TestMetricsAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	if _, err := openOutside(t, io.Discard, "--metrics-address", taken.Addr().String()); codeOf(err) != exitUsage {
		t.Errorf("an address that is taken: %v", err)
	}
	if seen, err := openOutside(t, io.Discard, "--metrics-address="); err != nil || len(seen.servers) > 0 {
		t.Errorf("no address: %v", err)
	}
	var log bytes.Buffer
	first, err := openOutside(t, &log)
	must(t, err)
	second, err := openOutside(t, &log) // the default port is already in use, by the first process or by another program
	if err != nil || len(first.servers)+len(second.servers) > 1 || !strings.Contains(log.String(), "--metrics-address") {
		t.Errorf("two processes with the default address: %v\n%s", err, log.String())
	}
}

func TestPprofIsForThisMachineAlone(t *testing.T) {
	for _, address := range []string{":6060", "0.0.0.0:6060", "[::]:6060", "192.0.2.1:6060", "example.com:6060", "6060"} {
		if _, err := openOutside(t, io.Discard, "--metrics-address=", "--pprof-address", address); codeOf(err) != exitUsage {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		var log strings.Builder
		must(t, errorOf(openOutside(t, &log, "--metrics-address=", "--pprof-address", address)))
		_, at, _ := strings.Cut(log.String(), "address=")
		res, err := http.Get("http://" + strings.TrimSpace(at) + "/debug/pprof/heap?debug=1")
		must(t, err)
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || !strings.Contains(string(body), "heap profile") {
			t.Errorf("%s: heap profile: %d, %v", address, res.StatusCode, err)
		}
	}
}
