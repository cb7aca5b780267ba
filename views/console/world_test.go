package console

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAHeldAppIsAtTheCommitThatChangedIt checks that a held app shows the commit of its record while no newer commit
// changes the app.
func TestAHeldAppIsAtTheCommitThatChangedIt(t *testing.T) {
	repo := gittest.New(t)
	held := repo.CommitFiles("app", map[string]string{
		rollout.ConfigPath("prod"):     "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n",
		"apps/shop/kustomization.yaml": "resources: [config.yaml]\n",
		"apps/shop/config.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n",
	})
	tip := repo.CommitFiles("readme", map[string]string{"README.md": "not of the app\n"})
	state, err := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Pending,
		Held: &rollout.Held{Reason: rollout.HeldPolicy, Message: "a rule", Commit: held}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	repo.Git("checkout", "-q", "--orphan", "state")
	repo.CommitFiles("held", map[string]string{rollout.StatePath("shop"): string(state)})
	repo.Git("push", "-q", "origin", "HEAD:refs/heads/"+rollout.StateBranch("prod"))
	repo.Git("checkout", "-q", "main")
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	w := New(Options{Cluster: "prod", Branch: "main", Repo: mirror, Renderer: render.New(render.InProcess{}), Detail: true})
	commit := func() string {
		t.Helper()
		if _, err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		app, err := w.App("shop")
		if err != nil {
			t.Fatal(err)
		}
		in, err := w.Input(t.Context(), app, time.Now())
		if err != nil || in.Head.Render == nil || in.Head.Render.Commit != in.Head.Commit {
			t.Fatalf("%+v, %v", in.Head, err)
		}
		return in.Head.Commit.ID
	}
	if got := commit(); got != held {
		t.Errorf("it is at %s, want %s; the newest is %s", got, held, tip)
	}
	tip = repo.CommitFiles("app", map[string]string{"apps/shop/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop2}\n"})
	if got := commit(); got != tip {
		t.Errorf("it is at %s, want the newest, %s", got, tip)
	}
}
