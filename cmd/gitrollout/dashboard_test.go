package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
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

// TestDashboardPortThatIsTaken checks that a dashboard port in use causes only a warning. An empty address causes no warning. In both
// cases, the reconciler runs without a dashboard.
func TestDashboardPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	var out bytes.Buffer
	// The test has no loop, so a dashboard that is served would panic.
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

// TestFleetOfSignedRecords checks the dashboard of a reconciler with a --verify-fleet file. Another cluster's record is shown only if a key
// in the file has signed it. The reconciler's own cluster needs no key in the file.
func TestFleetOfSignedRecords(t *testing.T) {
	repo := gittest.New(t)
	commit := repo.CommitFiles("app", map[string]string{"apps/shop/kustomization.yaml": "resources: []\n",
		rollout.ConfigPath("dev"): configOf("shop", "- path: apps/*"), rollout.ConfigPath("prod"): configOf("shop", "- path: apps/*"),
		rollout.FleetPath: "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n- {name: all, clusters: [dev, prod]}\n"})
	data, err := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Healthy, Source: commit}.Encode()
	must(t, err)
	repo.Git("checkout", "-q", "--orphan", "record")
	repo.Git("rm", "-rqf", ".")
	repo.CommitFiles("record", map[string]string{rollout.StatePath("shop"): string(data)})
	repo.Git("push", "-q", "origin", "HEAD:refs/heads/"+rollout.StateBranch("dev"), "HEAD:refs/heads/"+rollout.StateBranch("prod"))
	public, err := os.ReadFile(repo.NewKeyFile() + ".pub")
	must(t, err)
	file := filepath.Join(t.TempDir(), "clusters")
	must(t, os.WriteFile(file, []byte("prod "+string(public)), 0o600))
	keys, err := git.OpenKeys(git.KeyFiles{Fleet: file})
	must(t, err)
	mirror, err := openRepository(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "dev"})
	must(t, err)
	records := dashRecords(sourceOptions{cluster: "dev", branch: "main", keys: keys}, mirror, streams{out: io.Discard, err: io.Discard})
	f, _, err := records.Fleet(t.Context())
	must(t, err)
	all := f.Apps[0].Stages["all"]
	compare.Check(t, []rollout.Phase{rollout.Healthy, status.Unknown}, []rollout.Phase{all[0].Phase, all[1].Phase})
	compare.Contains(t, strings.Join(f.Notes, ""), "cluster prod: state branch gitrollout/state/prod: the commit is not signed")
}
