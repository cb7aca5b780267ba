package console

import (
	"errors"
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

// recordIn commits the record of shop, and other files, to the state branch of a cluster in the repository bare.
func recordIn(t *testing.T, bare, cluster string, r rollout.State, files map[string]string) {
	t.Helper()
	r.App, r.Path = "shop", "apps/shop"
	data, err := r.Encode()
	must(t, err)
	edits := map[string][]byte{rollout.StatePath("shop"): data}
	for file, text := range files {
		edits[file] = []byte(text)
	}
	w, err := git.Open(t.Context(), git.Options{URL: bare, Branch: "main", Cluster: cluster})
	must(t, err)
	_, err = w.CommitToBranch(t.Context(), rollout.StateBranch(cluster), func(*git.Snapshot) (rollout.Update, error) {
		return rollout.Update{Edits: edits, Message: "record", When: time.Unix(1e9, 0)}, nil
	})
	must(t, err)
}

// TestFleet checks that the stages are read from Git alone: from state branches in the users' repository and in other repositories. A note
// names each branch that is missing, unreachable, unreadable or of another cluster, and each invalid configuration.
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
	fleetOf := func(app string) (status.Fleet, error) {
		t.Helper()
		records := &Records{Options: Options{Repo: mirror, Now: time.Now}, Only: app}
		f, _, err := records.Fleet(t.Context())
		return f, err
	}
	write := func(bare, cluster, owner, phase string) {
		edits := map[string]string{rollout.StatePath("gone"): "no record"}
		if owner != "" {
			edits[rollout.ClusterPath] = owner
		}
		recordIn(t, bare, cluster, rollout.State{Phase: rollout.Phase(phase), Source: commit}, edits)
	}
	_, err = fleetOf("")
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
	f, err := fleetOf("")
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
	one, err := fleetOf("shop")
	must(t, err)
	compare.Check(t, []string{"shop"}, rollout.Mapped(one.Apps, func(a status.FleetApp) string { return a.App }))
	_, err = fleetOf("shpo")
	if _, is := err.(NoAppError); !is || !strings.HasSuffix(err.Error(), "; did you mean shop?") {
		t.Errorf("an unknown app: %v", err)
	}
}

// TestFleetOfDashboard checks how often a page of all stages looks up the state branches. Within 5 seconds, the page looks up no branch
// again. Afterwards, it looks up each branch once. Only changed records are downloaded and parsed. A cluster is Unknown if its record is
// missing or not signed.
func TestFleetOfDashboard(t *testing.T) {
	repo := gittest.New(t)
	stages := "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n- {name: dev, clusters: [dev]}\n- {name: prod, clusters: [prod]}\n"
	commit := repo.CommitFiles("app", map[string]string{"apps/shop/kustomization.yaml": "resources: []\n", rollout.FleetPath: stages,
		rollout.ConfigPath("dev"): config, rollout.ConfigPath("prod"): config})
	put := func(cluster string, phase rollout.Phase) {
		recordIn(t, repo.Bare, cluster, rollout.State{Phase: phase, Source: commit}, nil)
	}
	put("dev", rollout.Healthy)
	put("prod", rollout.Healthy)
	mirror, err := git.Open(t.Context(), git.Options{URL: repo.Bare, Branch: "main", Cluster: "dev"})
	must(t, err)
	_, err = mirror.Fetch(t.Context())
	must(t, err)
	now, forged := time.Unix(1e9, 0), ""
	believe := func(cluster string, _ source.Snapshot) error {
		if cluster == forged {
			return errors.New("its key is unknown")
		}
		return nil
	}
	records := &Records{Options: Options{Repo: mirror, Cluster: "dev", Now: func() time.Time { return now }}, BelievePeer: believe,
		Believe: func(head source.Snapshot) error { return believe("dev", head) }}
	look := func(after time.Duration) (text, tag string) {
		t.Helper()
		now = now.Add(after)
		f, tag, err := records.Fleet(t.Context())
		must(t, err)
		for _, stage := range f.Stages {
			for _, a := range f.Apps[0].Stages[stage] {
				text += a.Cluster + " " + string(a.Phase) + " "
			}
		}
		return text + strings.Join(f.Notes, "\n"), tag
	}
	text, first := look(0)
	compare.Check(t, "dev Healthy prod Healthy ", text)
	for after, lookups := range map[time.Duration]int64{time.Second: 0, lookEvery: 2} {
		before := mirror.Stats()
		text, tag := look(after)
		is := mirror.Stats()
		compare.Check(t, []any{"dev Healthy prod Healthy ", first, lookups, before.Fetches},
			[]any{text, tag, is.Lookups - before.Lookups, is.Fetches})
	}

	parsed := records.fleet.states
	put("prod", rollout.Pending)
	text, second := look(lookEvery)
	compare.CheckNamed(t, "a new record", []any{"dev Healthy prod Pending ", false}, []any{text, second == first})
	same := 0
	for id, s := range records.fleet.states {
		if parsed[id] == s {
			same++
		}
	}
	compare.CheckNamed(t, "records, and records that are not parsed again", []int{2, 1}, []int{len(records.fleet.states), same})

	repo.CommitFiles("lab", map[string]string{rollout.FleetPath: stages + "- {name: lab, clusters: [lab]}\n",
		rollout.ConfigPath("lab"): config + "stateRepo: " + repo.Bare + "-gone.git\n"})
	forged = "prod"
	text, third := look(lookEvery)
	compare.Contains(t, text, "dev Healthy prod Unknown lab Unknown cluster prod: state branch gitrollout/state/prod: its key is unknown",
		"\ncluster lab: state branch gitrollout/state/lab: ")
	forged = "dev"
	text, _ = look(lookEvery)
	compare.Contains(t, text, "dev Unknown prod Pending lab Unknown cluster dev: ")
	forged = ""
	text, fourth := look(lookEvery)
	compare.Contains(t, text, "dev Healthy prod Pending lab Unknown cluster lab: ")
	compare.CheckNamed(t, "equal tags", false, third == second || fourth == third)
}
