package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestFleet checks that the stages are read from Git alone: from state branches in the users' and in other repositories. A note names each
// branch that is missing, unreachable, unreadable or of another cluster, and each invalid configuration.
func TestFleet(t *testing.T) {
	repo := gittest.New(t)
	state := repo.Bare + "-state.git"
	files := map[string]string{"apps/shop/kustomization.yaml": "resources: []\n", rollout.ConfigPath("broken"): "apps: 1\n",
		rollout.ConfigPath("dev"):     config,
		rollout.ConfigPath("staging"): config + "stateRepo: " + state + "\n",
		rollout.ConfigPath("prod-eu"): config, rollout.ConfigPath("prod-us"): config, rollout.ConfigPath("prod-ap"): config,
		rollout.ConfigPath("prod-sa"): config + "stateRepo: " + repo.Bare + "-gone.git\n",
	}
	commit := repo.CommitFiles("app", files)
	repo.Git("clone", "-q", "--bare", repo.Bare, state)
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main"})
	must(t, err)
	at := func() *git.Snapshot {
		heads, err := mirror.Fetch(t.Context())
		must(t, err)
		tree, err := mirror.Snapshot(t.Context(), heads.Main)
		must(t, err)
		return tree
	}
	write := func(bare, cluster, owner, phase string) {
		r := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Phase(phase), Source: commit}
		data, err := r.Encode()
		must(t, err)
		edits := map[string][]byte{rollout.StatePath("shop"): data, rollout.StatePath("gone"): []byte("no record")}
		if owner != "" {
			edits[rollout.ClusterPath] = []byte(owner)
		}
		w, err := git.Open(t.Context(), git.Options{URL: bare, Branch: "main", Cluster: cluster})
		must(t, err)
		_, err = w.CommitToBranch(t.Context(), rollout.StateBranch(cluster), func(*git.Snapshot) (rollout.Update, error) {
			return rollout.Update{Edits: edits, Message: "record", When: time.Unix(1e9, 0)}, nil
		})
		must(t, err)
	}
	_, err = Fleet(t.Context(), mirror, at(), "", time.Now())
	if !rollout.IsInvalid(err) {
		t.Errorf("without fleet.yaml: %v", err)
	}
	compare.Contains(t, err.Error(), rollout.FleetPath+": does not exist", "commit stages there")
	repo.CommitFiles("stages", map[string]string{rollout.FleetPath: "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n" +
		"- {name: dev, clusters: [dev]}\n- {name: staging, clusters: [staging]}\n- {name: prod, clusters: ['prod-*', broken]}\n"})
	other, err := (&rollout.Cluster{Cluster: "lab", UID: "uid", Source: rollout.Source{Repo: "r", Branch: "main"},
		Writer: rollout.Writer{ID: "w", Epoch: 1}}).Encode()
	must(t, err)
	write(repo.Bare, "dev", "", "Healthy")
	write(state, "staging", "", "Pending")
	write(repo.Bare, "prod-eu", string(other), "Healthy")
	write(repo.Bare, "prod-ap", "no owner", "Healthy")
	tree := at()
	f, err := Fleet(t.Context(), mirror, tree, "", time.Now())
	must(t, err)
	seen := ""
	for _, a := range f.Apps {
		for _, c := range slices.Concat(a.Stages["dev"], a.Stages["staging"], a.Stages["prod"]) {
			seen += a.App + " " + c.Cluster + " " + string(c.Phase) + "\n"
		}
	}
	compare.Check(t, "gone dev Unknown\ngone staging Unknown\nshop dev Healthy\nshop staging Pending\nshop prod-ap Unknown\n"+
		"shop prod-eu Unknown\nshop prod-sa Unknown\nshop prod-us Unknown\n", seen)
	compare.Contains(t, strings.Join(f.Notes, "\n"), "cluster prod-us: state branch gitrollout/state/prod-us: does not exist: run gitrollout",
		"cluster prod-eu: state branch gitrollout/state/prod-eu: belongs to cluster lab",
		"cluster prod-ap: state branch gitrollout/state/prod-ap: state branch: ",
		"cluster prod-sa: state branch gitrollout/state/prod-sa: ", "cluster broken: "+rollout.ConfigPath("broken")+": ")
	one, err := Fleet(t.Context(), mirror, source.Snapshot(tree), "shop", time.Now())
	must(t, err)
	compare.Check(t, []string{"shop"}, rollout.Mapped(one.Apps, func(a status.FleetApp) string { return a.App }))
	_, err = Fleet(t.Context(), mirror, tree, "shpo", time.Now())
	if _, is := err.(NoAppError); !is || !strings.HasSuffix(err.Error(), "; did you mean shop?") {
		t.Errorf("an unknown app: %v", err)
	}
}
