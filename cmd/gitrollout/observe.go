package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/metrics"
	"gitrollout.dev/gitrollout/publish/serve"
	"gitrollout.dev/gitrollout/publish/tracing"
	"gitrollout.dev/gitrollout/reconciler/report"
)

type observeOptions struct {
	metrics string
	pprof   string
	flags   interface{ Changed(string) bool }
}

func (o *observeOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	// The default is a loopback address, because metrics contain app names. Common exporters use other ports.
	flags.StringVar(&o.metrics, "metrics-address", "127.0.0.1:8085",
		"serve /metrics, /healthz and /readyz at `host:port`, \"\" for nowhere")
	flags.StringVar(&o.pprof, "pprof-address", "",
		"serve Go's profiles at this loopback `host:port`, path /debug/pprof/ (default: nowhere)")
	o.flags = flags
}

type outside struct {
	log     *slog.Logger
	standby bool // with leader election, ready without a fetch, because only the leader reads Git
	metrics atomic.Pointer[metrics.Metrics]
	hung    atomic.Value // a func() string that describes hung work; nil before attach
	tracing *tracing.Tracing
	synced  atomic.Bool
	read    atomic.Bool // Git was fetched, or standby is set
	servers []func()
}

func (o *observeOptions) open(log *slog.Logger, standby bool) (*outside, error) {
	seen := &outside{log: log, standby: standby}
	if o.pprof != "" {
		if err := seen.listenPprof(o.pprof); err != nil {
			return nil, err
		}
	}
	if o.metrics == "" {
		return seen, nil
	}
	listener, err := net.Listen("tcp", o.metrics)
	switch {
	case err == nil:
		seen.serve("metrics", listener, seen.handler())
	case o.flags.Changed("metrics-address"):
		seen.stop()
		return nil, usagef("--metrics-address: %v", err)
	default:
		log.Warn("metrics are not served: name another address with --metrics-address", "error", err)
	}
	return seen, nil
}

// listenPprof accepts only a loopback address, because profiles contain memory.
func (seen *outside) listenPprof(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usagef("--pprof-address: %v", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef(
			"--pprof-address %s can be reached by other machines; use 127.0.0.1:%s, and kubectl port-forward for a pod",
			address, address[len(host)+1:])
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return usagef("--pprof-address: %v", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	seen.serve("pprof", listener, mux)
	return nil
}

func (seen *outside) serve(what string, listener net.Listener, handler http.Handler) {
	seen.servers = append(seen.servers, serve.On(listener, serve.Options{
		Address: listener.Addr().String(), Server: quiet(handler, seen.log.Handler()), Now: time.Now,
		Ended: func(err error) { seen.log.Error("no longer served", "what", what, "error", err) },
	}))
	seen.log.Info("serving", "what", what, "address", listener.Addr().String())
}

func (seen *outside) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if m := seen.metrics.Load(); m != nil {
			m.Handler().ServeHTTP(w, r)
			return
		}
		http.Error(w, seen.waiting(), http.StatusServiceUnavailable)
	})
	mux.HandleFunc("GET /healthz", probe(seen.hangs))
	mux.HandleFunc("GET /readyz", probe(seen.waiting))
	return mux
}

func quiet(handler http.Handler, log slog.Handler) *http.Server {
	return &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(log, slog.LevelDebug)}
}

func probe(trouble func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if text := trouble(); text != "" {
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	}
}

func (seen *outside) hangs() string {
	if hung, is := seen.hung.Load().(func() string); is {
		return hung()
	}
	return ""
}

// waiting returns why the process is not ready, or "". A ready process stays ready if Git becomes unreachable.
func (seen *outside) waiting() string {
	switch {
	case !seen.synced.Load():
		return "not ready: the cluster is being read"
	case !seen.read.Load():
		return "not ready: Git has not been read"
	default:
		return ""
	}
}

func (seen *outside) attach(ctx context.Context, l *loop, hung func() string) error {
	seen.hung.Store(hung)
	v := versionOf()
	m := metrics.New(metrics.Options{
		Cluster: l.source.cluster, Branch: l.source.branch, Version: v.Version, Revision: v.Commit, GoBuild: v.Go,
		Now: time.Now,
	})
	l.count(m)
	seen.metrics.Store(m)
	seen.synced.Store(true)
	seen.read.Store(seen.standby)
	tracers := []report.Tracer{seen.noteFetch, m.Trace(l.Stats)}
	if tracing.Enabled() {
		t, err := tracing.Start(ctx, tracing.Options{
			Version: v.Version, Cluster: l.source.cluster,
			Problem: func(err error) { seen.log.Warn("traces are not sent", "error", err) },
		})
		if err != nil {
			return usagef("%v", err)
		}
		seen.tracing = t
		tracers = append(tracers, t.Trace)
	}
	l.sinks.Tracers, l.sinks.Others = tracers, append(l.sinks.Others, m.Tell)
	return nil
}

func (seen *outside) noteFetch(ctx context.Context, part report.Part, _ string) (context.Context, func(error)) {
	return ctx, func(err error) {
		if part == report.PartFetch && err == nil {
			seen.read.Store(true)
		}
	}
}

func (seen *outside) leads(work func(context.Context) error) func(context.Context) error {
	m := seen.metrics.Load()
	return func(ctx context.Context) error {
		m.Leading(true)
		defer m.Leading(false)
		return work(ctx)
	}
}

func (l *loop) count(m *metrics.Metrics) {
	gitStats, kube := func() git.Stats { return l.created.Stats() }, l.client.Stats
	m.Count("gitrollout_git_requests_total", "", func() float64 { return float64(gitStats().Requests) })
	m.Count("gitrollout_git_received_bytes_total", "", func() float64 { return float64(gitStats().Received) })
	m.Count("gitrollout_git_sent_bytes_total", "", func() float64 { return float64(gitStats().Sent) })
	const requests = "gitrollout_kubernetes_requests_total"
	m.Count(requests, "read", func() float64 { return float64(kube().Reads) })
	m.Count(requests, "write", func() float64 { return float64(kube().Writes) })
	m.Count(requests, "dry_run", func() float64 { return float64(kube().DryRuns) })
	m.Count("gitrollout_kubernetes_events_lost_total", "", func() float64 { return float64(kube().LostEvents) })
	m.Count("gitrollout_builds_total", "", func() float64 { return float64(l.renderer.Builds()) })
}

func (seen *outside) stop() {
	if seen.tracing != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // to send the last spans
		defer cancel()
		if err := seen.tracing.Stop(ctx); err != nil {
			seen.log.Warn("traces are not sent", "error", fmt.Errorf("the last ones: %w", err))
		}
	}
	for _, stop := range seen.servers {
		stop()
	}
}
