package console

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestStateInAnotherRepository checks that a session reads the record and the history in the repository that the configuration names. A
// command's commit to the state branch goes to the same repository.
func TestStateInAnotherRepository(t *testing.T) {
	repo := gittest.New(t)
	state := repo.Bare + "-state.git"
	commit := repo.CommitFiles("app", map[string]string{
		rollout.ConfigPath("prod"): config + "stateRepo: " + state + "\n", "apps/shop/config.yaml": configMap,
		"apps/shop/kustomization.yaml": "resources: [config.yaml]\n",
	})
	repo.Git("clone", "-q", "--bare", repo.Bare, state)
	data, err := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Healthy, Source: commit}.Encode()
	must(t, err)
	writer, err := git.Open(t.Context(), git.Options{URL: state, Branch: "main", Cluster: "dev"})
	must(t, err)
	branch := rollout.StateBranch("prod")
	_, err = writer.CommitToBranch(t.Context(), branch, func(*git.Snapshot) (rollout.Update, error) {
		return rollout.Update{Edits: map[string][]byte{rollout.StatePath("shop"): data}, Message: "record", When: time.Unix(1e9, 0)}, nil
	})
	must(t, err)
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "prod"})
	must(t, err)
	w := New(Options{Cluster: "prod", Branch: "main", Repo: mirror, Renderer: render.New(render.InProcess{}), Detail: true, Now: time.Now})
	compare.Check(t, rollout.Healthy, inputOf(t, w, "shop").State.Phase)
	_, err = w.History(t.Context(), "shop", 10, 10)
	must(t, err)
	id, err := w.Record(t.Context(), "shop is removed", func(*git.Snapshot) (map[string][]byte, error) {
		return map[string][]byte{rollout.StatePath("shop"): nil}, nil
	})
	must(t, err)
	compare.Check(t, [2]string{id, ""}, [2]string{repo.Git("--git-dir", state, "rev-parse", branch), repo.Ref(branch)})
	compare.Check(t, rollout.Phase(""), inputOf(t, w, "shop").State.Phase)
}
