package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

func (m mirrorOf) Between(ctx context.Context, from, to string) ([]reconciler.Snapshot, error) {
	line, err := m.Line(ctx, from, to)
	return rollout.Mapped(line, func(s *git.Snapshot) reconciler.Snapshot { return s }), err
}

// TestStateInAnotherRepository runs a release with the state branch in another repository: each advance is recorded there before it is
// applied, and the proposal is in the users' repository. While the other repository refuses pushes, nothing advances.
func TestStateInAnotherRepository(t *testing.T) {
	repo := gittest.New(t)
	state := repo.Bare + "-state.git"
	repo.CommitFiles("v1", map[string]string{
		configFile:                     plainConfig + "stateRepo: " + state + "\n",
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": version("v1"),
	})
	repo.Git("clone", "-q", "--bare", repo.Bare, state)
	recorded := func() (s rollout.State) {
		file := rollout.StatePath("shop")
		data := repo.Git("--git-dir", state, "show", rollout.StateBranch("prod")+":"+file)
		parsed, err := rollout.ParseState(file, []byte(data+"\n"))
		must(t, err)
		return *parsed
	}
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "prod"})
	must(t, err)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := &world{T: t, now: now, cluster: &server{Cluster: kube.New(rand.New(rand.NewPCG(1, 1)), now)}}
	isRecorded := false
	w.cluster.refuses = func(o rollout.Object) error {
		if !isRecorded && strings.Contains(fmt.Sprint(o), "shop:v2") {
			if isRecorded = recorded().Release != nil; !isRecorded {
				t.Error("the release is applied before it is recorded")
			}
		}
		return nil
	}
	w.r = reconciler.New(reconciler.Options{Cluster: "prod", UID: "uid", Repository: mirrorOf{mirror}, Past: mirrorOf{mirror},
		Renderer: render.New(render.InProcess{}), Observer: w.cluster, Applier: w.cluster, Log: slog.New(slog.DiscardHandler),
		Writer: "test", Workers: 1})
	w.settle()
	compare.Check(t, rollout.Healthy, recorded().Phase)
	hook := filepath.Join(state, "hooks", "pre-receive")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho no; exit 1\n"), 0o755))
	repo.CommitFiles("v2", shopAt("v2"))
	for range 3 {
		if err := w.once(); !errors.Is(err, git.ErrRejected) {
			t.Errorf("the state cannot be pushed: %v", err)
		}
	}
	compare.CheckNamed(t, "pods of v2 without a record", 0, w.pods("v2"))
	must(t, os.Remove(hook))
	w.settle()
	w.want(rollout.Paused, 2)
	compare.Check(t, rollout.Paused, recorded().Phase)
	promotion := rollout.ProposalBranch(rollout.ProposePromotion, "prod", "shop")
	if repo.Ref(promotion) == "" || repo.Ref(rollout.StateBranch("prod")) != "" {
		t.Errorf("branches of the users' repository: %v", repo.Refs())
	}
	repo.Merge(promotion)
	w.settle()
	w.want(rollout.Healthy, 4)
	compare.Check(t, rollout.Healthy, recorded().Phase)
}
