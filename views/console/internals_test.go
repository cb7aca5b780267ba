package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record commits an app's record to the state branch. The last arguments are for the git checkout before the commit.
func record(t *testing.T, repo *gittest.Repo, state rollout.State, checkout ...string) {
	t.Helper()
	data, err := state.Encode()
	must(t, err)
	repo.Git(append([]string{"checkout", "-q"}, checkout...)...)
	repo.CommitFiles("record", map[string]string{rollout.StatePath(state.App): string(data)})
	repo.Git("push", "-q", "origin", "HEAD:refs/heads/"+rollout.StateBranch("prod"))
	repo.Git("checkout", "-q", "main")
}

// worldOf writes an app's record to the state branch. It returns a session before its first Refresh.
func worldOf(t *testing.T, repo *gittest.Repo, state rollout.State) *Session {
	t.Helper()
	record(t, repo, state, "--orphan", "state")
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "prod"})
	must(t, err)
	return New(Options{Cluster: "prod", Branch: "main", Repo: mirror, Renderer: render.New(render.InProcess{}), Detail: true})
}

// inputOf calls Refresh, and returns the input of a decision about an app.
func inputOf(t *testing.T, w *Session, name string) strategies.Input {
	t.Helper()
	_, err := w.Refresh(t.Context())
	must(t, err)
	app, err := w.App(name)
	must(t, err)
	in, err := w.Input(t.Context(), app, time.Now())
	must(t, err)
	return in
}

const (
	config    = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"
)

// TestAHeldAppIsAtTheCommitThatChangedIt checks that a held app is shown at the commit in State.Held until a newer commit changes the app.
func TestAHeldAppIsAtTheCommitThatChangedIt(t *testing.T) {
	repo := gittest.New(t)
	held := repo.CommitFiles("app", map[string]string{
		rollout.ConfigPath("prod"): config, "apps/shop/config.yaml": configMap,
		"apps/shop/kustomization.yaml": "resources: [config.yaml]\n",
	})
	tip := repo.CommitFiles("readme", map[string]string{"README.md": "not of the app\n"})
	w := worldOf(t, repo, rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Pending,
		Held: &rollout.Held{Reason: rollout.HeldPolicy, Message: "a rule", Commit: held}})
	commit := func() string {
		t.Helper()
		in := inputOf(t, w, "shop")
		if in.Head.Render == nil || in.Head.Render.Commit != in.Head.Commit {
			t.Fatalf("%+v", in.Head)
		}
		return in.Head.Commit.ID
	}
	compare.CheckNamed(t, "it is at the commit of its record", held, commit())
	tip = repo.CommitFiles("app", map[string]string{"apps/shop/config.yaml": strings.Replace(configMap, "shop", "shop2", 1)})
	compare.CheckNamed(t, "it is at the newest commit", tip, commit())
}

// TestUnreadableAppIsShown checks that a listing of all apps shows the error of an app whose commit cannot be read. A listing of only this
// app returns the error.
func TestUnreadableAppIsShown(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("apps", map[string]string{
		rollout.ConfigPath("prod"): config, "apps/shop/config.yaml": configMap,
		"apps/shop/kustomization.yaml": "resources: [config.yaml]\n",
		"apps/till/kustomization.yaml": "resources: [config.yaml]\n", "apps/till/config.yaml": strings.Replace(configMap, "shop", "till", 1),
	})
	w := worldOf(t, repo, rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Healthy, Source: strings.Repeat("1", 40)})
	_, err := w.Refresh(t.Context())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(repo.Bare, "config"), []byte("["), 0o600))
	l, err := w.Listing(t.Context(), nil, time.Now())
	must(t, err)
	row := func(app string) status.App {
		a, _ := rollout.Find(l.Apps, func(a status.App) bool { return a.App == app })
		return a
	}
	shop, till := row("shop").Held, row("till")
	if shop == nil || !strings.Contains(shop.Message, "the app cannot be read: ") || till.App == "" || till.Held != nil {
		t.Errorf("shop: %+v, till: %+v", shop, till)
	}
	_, err = w.Listing(t.Context(), []string{"shop"}, time.Now())
	compare.CheckError(t, "get shop", err, "app shop: ")
}

// TestRefreshAfterACancelledOne checks a Refresh after a Refresh that was cancelled while it searched for a valid
// configuration. The second Refresh must read the newest commit, although the first has already fetched it.
func TestRefreshAfterACancelledOne(t *testing.T) {
	repo := gittest.New(t)
	write := func(text string) string {
		return repo.CommitFiles("config", map[string]string{rollout.ConfigPath("prod"): text})
	}
	write(config)
	server := repo.HTTP(gittest.HTTPOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Body = io.NopCloser(bytes.NewReader(body)); bytes.Contains(body, []byte("deepen 100")) && ctx.Err() == nil {
			cancel()
			return
		}
		server.Proxy().ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	mirror, err := git.Open(t.Context(), git.Options{URL: proxy.URL + "/" + filepath.Base(repo.Bare), Branch: "main", Cluster: "prod"})
	must(t, err)
	w := New(Options{Cluster: "prod", Branch: "main", Repo: mirror, Renderer: render.New(render.InProcess{})})
	_, err = w.Refresh(t.Context())
	must(t, err)
	write("apps: 3\n")
	tip := write("apps: 4\n")
	if _, err := w.Refresh(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled Refresh returns %v", err)
	}
	_, err = w.Refresh(t.Context())
	must(t, err)
	compare.CheckNamed(t, "the newest commit", tip, w.Tip.Tree.Commit().ID)
	compare.Contains(t, w.Warning(), "until this is fixed, no release advances")
}

// TestAContestedApp checks an app that is held because another app owns its object (HeldContested). The session renders
// only this app, so it takes the reason from the record. When a commit changes the app, the reason no longer applies.
func TestAContestedApp(t *testing.T) {
	repo := gittest.New(t)
	held := repo.CommitFiles("two apps", map[string]string{
		rollout.ConfigPath("prod"): config, "apps/shop/config.yaml": configMap,
		"apps/shop/kustomization.yaml": "resources: [config.yaml]\n",
		"apps/web/kustomization.yaml":  "resources: [config.yaml]\n", "apps/web/config.yaml": configMap,
	})
	repo.CommitFiles("readme", map[string]string{"README.md": "of no app\n"})
	why := rollout.Held{Reason: rollout.HeldContested, Commit: held,
		Message: "ConfigMap /shop is in app web and in app shop, which owns the object; keep it in one app"}
	w := worldOf(t, repo, rollout.State{App: "web", Path: "apps/web", Phase: rollout.Pending, Held: &why})
	in := inputOf(t, w, "web")
	if err := in.HeadErr(); err == nil || err.Error() != why.Message || rollout.ReasonOf(err) != why.Reason {
		t.Errorf("its head: %v", err)
	}
	d := strategies.Decide(in)
	compare.CheckNamed(t, "subject, and held", []any{"", why}, []any{d.Subject, *d.State.Held})
	l, err := w.Listing(t.Context(), []string{"web"}, time.Now())
	if err != nil || *l.Apps[0].Held != why || l.Apps[0].Waiting != "" {
		t.Errorf("get: %+v, %v", l.Apps, err)
	}
	repo.CommitFiles("mended", map[string]string{"apps/web/config.yaml": strings.Replace(configMap, "shop", "web", 1)})
	if in = inputOf(t, w, "web"); in.HeadErr() != nil || in.Head.Render == nil {
		t.Errorf("after a change: %+v", in.Head)
	}
}
