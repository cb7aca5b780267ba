package fleet_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/fleet"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world has an app's inputs and records in each cluster. By default, the inputs of the commit "c3" are "fc3" and "oc3".
type world struct {
	line     []string // candidates, newest first
	records  map[string]rollout.State
	problems map[string]string
	inputs   map[string]fleet.Inputs // by cluster and commit, as in "dev c3"
	gone     []string                // clusters that do not list the app any more
	unknown  error
	unread   bool     // the default inputs are not known yet
	looked   []string // clusters whose record was read
	asked    []string // as in "dev c3"
}

func (w *world) Candidates() ([]string, error) { return w.line, nil }

func (w *world) Record(cluster string) (rollout.State, string, error) {
	w.looked = append(w.looked, cluster)
	return w.records[cluster], w.problems[cluster], w.unknown
}

func (w *world) Inputs(cluster, commit string) (fleet.Inputs, error) {
	w.asked = append(w.asked, cluster+" "+commit)
	if i, has := w.inputs[cluster+" "+commit]; has {
		return i, nil
	} else if w.unread {
		return fleet.Inputs{}, errors.New("not ready")
	}
	return fleet.Inputs{Files: "f" + commit, Objects: "o" + commit}, nil
}

func (w *world) Lists(cluster string) bool { return !slices.Contains(w.gone, cluster) }

// at returns the record of a healthy app at a commit. The commits in soaked have soaked.
func at(commit string, soaked ...string) rollout.State {
	s := rollout.State{Phase: rollout.Healthy, Source: commit, Stable: &rollout.Release{Commit: commit, Since: noon.Add(-20 * time.Minute)},
		SoaksSince: noon.Add(-20 * time.Minute)}
	for _, c := range soaked {
		s.Soaked = append(s.Soaked, rollout.Soaked{Commit: c})
	}
	return s
}

func stagesOf(prod rollout.Stage) *rollout.Fleet {
	all := rollout.Amount{Value: 100, Percent: true}
	prod.Name, prod.Clusters = "prod", []string{"prod-a", "prod-b", "prod-c", "prod-d"}
	if prod.MaxUpdate.Value == 0 {
		prod.MaxUpdate = all
	}
	return &rollout.Fleet{Stages: []rollout.Stage{
		{Name: "dev", Clusters: []string{"dev"}, MaxUpdate: all},
		{Name: "staging", Clusters: []string{"staging-eu", "staging-us"}, Soak: time.Hour, MaxUpdate: all}, prod,
	}}
}

const unlisted = "staging-us of stage staging: no longer lists the app, whose objects remain; to end the wait: gitrollout remove shop " +
	"--cluster staging-us, or gitrollout promote shop --cluster prod-a --through entry"

// TestChoose checks which commit an app of prod-a follows, and the text while the app waits.
func TestChoose(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *world, p *fleet.Place, own *rollout.State)
		commit string
		want   string // Waits and Hold
		note   string
	}{
		"proven":                    {func(w *world, _ *fleet.Place, _ *rollout.State) { w.line = []string{"c3"} }, "c3", " | ", ""},
		"the newest that is proven": {func(*world, *fleet.Place, *rollout.State) {}, "c3", " | ", ""},
		"nothing newer":             {func(w *world, _ *fleet.Place, _ *rollout.State) { w.line = nil }, "", " | ", ""},
		"one cluster soaks": {func(w *world, _ *fleet.Place, _ *rollout.State) { w.records["staging-us"] = at("c3") }, "c4",
			"staging-eu of stage staging: has not taken the change | stage staging", ""},
		"soaks": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.line, w.records["staging-us"] = []string{"c3"}, at("c3", "c2")
		}, "c3", "staging-us of stage staging: soaks until 12:40 UTC | stage staging", ""},
		"soaks since an unknown time": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c3")
			s.SoaksSince = time.Time{}
			w.line, w.records["staging-us"] = []string{"c3"}, s
		}, "c3", "staging-us of stage staging: soaks | stage staging", ""},
		"in flight": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c3")
			s.Phase, s.Release = rollout.Progressing, &rollout.Release{Commit: "c3"}
			w.line, w.records["staging-us"] = []string{"c3"}, s
		}, "c3", "staging-us of stage staging: is Progressing | stage staging", ""},
		"not deployed": {func(w *world, _ *fleet.Place, _ *rollout.State) { w.records["staging-us"] = rollout.State{} }, "c4",
			"staging-eu of stage staging: has not taken the change | stage staging", ""},
		"not deployed at all": {func(w *world, _ *fleet.Place, _ *rollout.State) { delete(w.records, "staging-eu") }, "c4",
			"staging-eu of stage staging: has not deployed the app | stage staging", ""},
		"rejected": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c3", "c3")
			s.Rejected = []rollout.Rejection{{Commit: "c3"}}
			w.line, w.records["staging-us"] = []string{"c3"}, s
		}, "c3", "staging-us of stage staging: rejected the change | staging-us of stage staging: rejected the change", ""},
		"another change was rejected": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c3", "c3")
			s.Rejected = []rollout.Rejection{{Commit: "c2"}}
			w.records["staging-us"] = s
		}, "c3", " | ", ""},
		"a record that does not count": {func(w *world, _ *fleet.Place, _ *rollout.State) { w.problems["staging-us"] = "no answer" }, "c4",
			"staging-eu of stage staging: has not taken the change | stage staging", ""},
		"no record counts": {func(w *world, _ *fleet.Place, _ *rollout.State) { w.problems["staging-eu"] = "no answer" }, "c4",
			"staging-eu of stage staging: no answer | staging-eu of stage staging: its state branch is unusable", ""},
		"same inputs before": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.inputs["staging-eu c4"], w.inputs["staging-us c4"] = fleet.Inputs{Files: "fc2"}, fleet.Inputs{Files: "fc3"}
		}, "c4", " | ", ""},
		"same objects before": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.inputs["staging-eu c4"], w.inputs["staging-us c4"] = fleet.Inputs{Files: "x", Objects: "oc2"}, fleet.Inputs{Files: "y", Objects: "oc3"}
		}, "c4", " | ", ""},
		"a later commit without a change here": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.line = []string{"c4", "c1"}
			w.inputs["prod-a c6"] = fleet.Inputs{Files: "fc4"}
			w.records["staging-eu"], w.records["staging-us"] = at("c6", "c6"), at("c6", "c6")
		}, "c4", " | ", ""},
		"a later commit with a change here": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.line = []string{"c4"}
			w.records["staging-eu"], w.records["staging-us"] = at("c6", "c6"), at("c6", "c6")
		}, "c4", "staging-eu of stage staging: has not taken the change | stage staging", ""},
		"a later commit that one cluster lacks": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.line = []string{"c4"}
			w.inputs["prod-a c5"], w.inputs["prod-a c6"] = fleet.Inputs{Files: "fc4"}, fleet.Inputs{Files: "fc4"}
			w.records["staging-eu"], w.records["staging-us"] = at("c6", "c6"), at("c5", "c5")
		}, "c4", "staging-eu of stage staging: has not taken the change | stage staging", ""},
		"no app before": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.inputs["staging-eu c4"], w.inputs["staging-us c4"] = fleet.Inputs{}, fleet.Inputs{}
		}, "c4", " | ", "stage staging has no app shop"},
		"no app in one": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.inputs["staging-eu c4"], w.inputs["staging-us c4"] = fleet.Inputs{Files: "fc3"}, fleet.Inputs{}
		}, "c4", " | ", "staging-us of stage staging has no app shop"},
		"no app before any more": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.gone = []string{"staging-eu", "staging-us"}
			delete(w.records, "staging-us")
		}, "c4", " | ", "stage staging has no app shop"},
		"no app in one any more": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.gone, w.inputs["staging-eu c4"] = []string{"staging-us"}, fleet.Inputs{Files: "fc3"}
		}, "c4", " | ", "staging-us of stage staging has no app shop"},
		"unlisted in one, with objects": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c2")
			s.Inventory = []rollout.Ref{{Kind: "ConfigMap", Name: "shop"}}
			w.line, w.records["staging-us"], w.gone = []string{"c3"}, s, []string{"staging-us"}
		}, "c3", unlisted + " | " + unlisted, ""},
		"unlisted at the commit, with objects": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c2")
			s.Inventory = []rollout.Ref{{Kind: "ConfigMap", Name: "shop"}}
			w.line, w.records["staging-us"], w.gone = []string{"c3"}, s, []string{"staging-us"}
			w.inputs["staging-us c3"] = fleet.Inputs{}
		}, "c3", unlisted + " | " + unlisted, ""},
		"listed only later, with objects": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c2")
			s.Inventory = []rollout.Ref{{Kind: "ConfigMap", Name: "shop"}}
			w.line, w.records["staging-us"], w.inputs["staging-us c3"] = []string{"c3"}, s, fleet.Inputs{}
		}, "c3", "staging-us of stage staging: has not taken the change | stage staging", ""},
		"unlisted at the commit, no answer": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			w.line, w.problems["staging-us"], w.inputs["staging-us c3"] = []string{"c3"}, "no answer", fleet.Inputs{}
		}, "c3", "staging-us of stage staging: no answer | staging-us of stage staging: its state branch is unusable", ""},
		"rejected, and no app any more": {func(w *world, _ *fleet.Place, _ *rollout.State) {
			s := at("c3")
			s.Rejected = []rollout.Rejection{{Commit: "c3"}}
			w.line, w.records["staging-us"], w.gone = []string{"c3"}, s, []string{"staging-us"}
		}, "c3", "staging-us of stage staging: rejected the change | staging-us of stage staging: rejected the change", ""},
		"soaks here": {func(_ *world, p *fleet.Place, _ *rollout.State) { p.Fleet.Stages[2].Soak = time.Hour }, "c4",
			"prod-a of stage prod: another change soaks until 12:40 UTC | prod-a of stage prod: soaks another change", ""},
		"soaks here, unhealthy": {func(_ *world, p *fleet.Place, own *rollout.State) {
			p.Fleet.Stages[2].Soak, own.Unhealthy = time.Hour, "Deployment shop/web: 0 pods are ready"
		}, "c3", " | ", ""},
		"soaked here": {func(_ *world, p *fleet.Place, own *rollout.State) {
			p.Fleet.Stages[2].Soak, own.Soaked = time.Hour, []rollout.Soaked{{Commit: "c1"}}
		}, "c3", " | ", ""},
		"no approval": {func(_ *world, p *fleet.Place, _ *rollout.State) { p.Fleet.Stages[2].Approve = rollout.ApproveMerge }, "c3",
			"an approval for stage prod: gitrollout promote shop --through entry | an approval for stage prod, which an earlier cluster proposes", ""},
		"an approval": {func(w *world, p *fleet.Place, _ *rollout.State) {
			p.Approved, p.Fleet.Stages[2].Approve = "c3", rollout.ApproveMerge
		}, "c3", " | ", ""},
		"an approval of an older commit": {func(w *world, p *fleet.Place, _ *rollout.State) {
			p.Approved, p.Fleet.Stages[2].Approve = "c2", rollout.ApproveMerge
		}, "c2", " | ", ""},
		"an approval of the same content": {func(w *world, p *fleet.Place, _ *rollout.State) {
			p.Approved, p.Fleet.Stages[2].Approve = "c9", rollout.ApproveMerge
			w.inputs["prod-a c9"] = fleet.Inputs{Files: "fc2"}
		}, "c2", " | ", ""},
		"rejected here": {func(w *world, p *fleet.Place, own *rollout.State) {
			p.Fleet.Stages[2].Approve, own.Rejected = rollout.ApproveMerge, []rollout.Rejection{{Commit: "c3"}}
		}, "c3", " | ", ""},
		"an approval older than a rejected change": {func(w *world, p *fleet.Place, own *rollout.State) {
			p.Fleet.Stages[2].Approve, p.Approved, own.Rejected = rollout.ApproveMerge, "c2", []rollout.Rejection{{Commit: "c3"}}
		}, "c2", " | ", ""},
		"nothing changes here": {func(w *world, p *fleet.Place, _ *rollout.State) {
			w.inputs["prod-a c3"] = fleet.Inputs{Objects: "oc1"}
		}, "c2", " | ", ""},
		"an approval of another commit": {func(w *world, p *fleet.Place, _ *rollout.State) {
			p.Approved, p.Fleet.Stages[2].Approve = "c4", rollout.ApproveMerge
		}, "c3", "an approval for stage prod: gitrollout promote shop --through entry | an approval for stage prod, which an earlier cluster proposes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{line: []string{"c4", "c3", "c2"}, inputs: map[string]fleet.Inputs{}, problems: map[string]string{},
				records: map[string]rollout.State{"staging-eu": at("c3", "c3", "c2"), "staging-us": at("c3", "c3", "c2")}}
			own, p := at("c1"), fleet.Place{Fleet: stagesOf(rollout.Stage{}), Cluster: "prod-a", App: "shop"}
			if strings.HasPrefix(name, "one cluster") || strings.HasPrefix(name, "not deployed") || strings.HasPrefix(name, "a record") ||
				strings.HasPrefix(name, "no record") {
				w.line = []string{"c4", "c3"}
			}
			tt.change(w, &p, &own)
			c, err := p.Choose(w, own, noon)
			if err != nil {
				t.Fatal(err)
			}
			compare.Check(t, [3]string{tt.commit, tt.want, tt.note}, [3]string{c.Commit, c.Waits + " | " + c.Hold, c.Note})
		})
	}
}

// TestHasRun checks which content never waits: content that has soaked here, that is stable, or that was rejected. A commit that does
// not list the app has no content.
func TestHasRun(t *testing.T) {
	for name, tt := range map[string]struct {
		is   fleet.Inputs
		want bool
	}{
		"soaked":     {fleet.Inputs{Files: "fc0"}, true},
		"stable":     {fleet.Inputs{Files: "x", Objects: "oc2"}, true},
		"rejected":   {fleet.Inputs{Files: "fc1"}, true},
		"new":        {fleet.Inputs{Files: "fc9", Objects: "oc9", Version: "v0"}, false},
		"not listed": {fleet.Inputs{}, false},
	} {
		w := &world{inputs: map[string]fleet.Inputs{"prod-a c4": tt.is, "prod-a c7": {}}}
		s := rollout.State{Source: "c3", Stable: &rollout.Release{Commit: "c2"}, Verified: []rollout.Hash{"v1", "v0"},
			Rejected: []rollout.Rejection{{Commit: "c1"}}, Soaked: []rollout.Soaked{{Commit: "c7"}, {Commit: "c0"}}}
		got, err := fleet.HasRun(w, "prod-a", s, "c4")
		if err != nil {
			t.Fatal(err)
		}
		compare.CheckNamed(t, name, tt.want, got)
	}
}

// TestFirstStage checks that a cluster of the first stage follows the newest commit, and reads no record of another cluster.
func TestFirstStage(t *testing.T) {
	w := &world{line: []string{"c4", "c3"}, unknown: errors.New("unknown")}
	c, err := fleet.Place{Fleet: stagesOf(rollout.Stage{}), Cluster: "dev", App: "shop"}.Choose(w, at("c1"), noon)
	if err != nil || c.Commit != "c4" || c.Waits != "" || len(w.looked) > 0 {
		t.Errorf("%+v, %v, looked at %v", c, err, w.looked)
	}
	if _, err = (fleet.Place{Fleet: stagesOf(rollout.Stage{}), Cluster: "prod-a", App: "shop"}).Choose(w, at("c1"), noon); err != w.unknown {
		t.Errorf("an unknown record: %v", err)
	}
}

// TestAsksAboutAllClusters checks that a decision asks for the inputs of several clusters at once. It asks first about the previous stage,
// then about clusters of the same stage with lower ranks.
func TestAsksAboutAllClusters(t *testing.T) {
	w := &world{line: []string{"c4"}, unread: true}
	p := fleet.Place{Fleet: stagesOf(rollout.Stage{MaxUpdate: rollout.Amount{Value: 1}}), App: "shop"}
	most := 0
	for _, p.Cluster = range p.Fleet.Stages[2].Clusters {
		w.asked, w.inputs = nil, nil
		if _, err := p.Choose(w, at("c1"), noon); err == nil {
			t.Error(p.Cluster, "decides without inputs")
		}
		compare.CheckNamed(t, p.Cluster, []string{"staging-eu c4", "staging-us c4"}, w.asked)
		w.asked, w.inputs = nil, map[string]fleet.Inputs{"staging-eu c4": {}, "staging-us c4": {}}
		_, err := p.Choose(w, at("c1"), noon)
		first := len(w.asked) - 2
		if most = max(most, first); (err == nil) != (first == 0) {
			t.Errorf("%s asks about %v: %v", p.Cluster, w.asked, err)
		}
	}
	compare.Check(t, 3, most)
}

// TestMaxUpdate checks that the clusters of a stage begin in the order of their ranks. A cluster begins if fewer than maxUpdate clusters
// with lower ranks are unfinished. A cluster without the app or with unchanged inputs is finished.
func TestMaxUpdate(t *testing.T) {
	for most, want := range map[rollout.Amount][]int{ // how many clusters may begin when 0, 1, 2 and 3 lower ranks are finished
		{Value: 25, Percent: true}:  {1, 2, 3, 4},
		{Value: 50, Percent: true}:  {2, 3, 4, 4},
		{Value: 1}:                  {1, 2, 3, 4},
		{Value: 3}:                  {3, 4, 4, 4},
		{Value: 1, Percent: true}:   {1, 2, 3, 4},
		{Value: 100, Percent: true}: {4, 4, 4, 4},
		{Value: 9}:                  {4, 4, 4, 4},
	} {
		f := stagesOf(rollout.Stage{MaxUpdate: most})
		w := &world{line: []string{"c3"}, inputs: map[string]fleet.Inputs{},
			records: map[string]rollout.State{"staging-eu": at("c3", "c3"), "staging-us": at("c3", "c3")}}
		order := slices.Clone(f.Stages[2].Clusters)
		slices.SortFunc(order, func(a, b string) int {
			_, x := fleet.Place{Fleet: f, Cluster: a, App: "shop"}.Ranked()
			_, y := fleet.Place{Fleet: f, Cluster: b, App: "shop"}.Ranked()
			return x - y
		})
		for done := range 4 {
			begin := 0
			for _, cluster := range order {
				c, err := fleet.Place{Fleet: f, Cluster: cluster, App: "shop"}.Choose(w, at("c1"), noon)
				if err != nil {
					t.Fatal(err)
				}
				if c.Waits == "" {
					begin++
				} else if !strings.HasPrefix(c.Waits, order[done]+" of stage prod: has not deployed the app (maxUpdate: ") {
					t.Errorf("%s: %s", cluster, c.Waits)
				}
			}
			compare.CheckNamed(t, fmt.Sprintf("maxUpdate %s, %d done", most, done), want[done], begin)
			switch done {
			case 0:
				w.records[order[0]] = at("c3", "c3")
			case 1:
				w.inputs[order[1]+" c3"] = fleet.Inputs{}
			case 2:
				w.inputs[order[2]+" c3"], w.records[order[2]] = fleet.Inputs{Files: "fc2"}, at("c2", "c2")
			}
		}
	}
}

// TestPush pushes every 5 minutes, with soaks of 20 minutes and outdated reads of records. No cluster takes a commit before the previous
// stage has soaked this commit. Each stage respects maxUpdate, and gets a new version at least every 50 minutes.
func TestPush(t *testing.T) {
	for seed := range uint64(50) {
		push(t, seed)
	}
}

func push(t *testing.T, seed uint64) {
	t.Helper()
	const soak = 20 * time.Minute
	rng := rand.New(rand.NewPCG(seed, 1))
	f := stagesOf(rollout.Stage{Soak: soak, MaxUpdate: rollout.Amount{Value: 50, Percent: true}})
	f.Stages[0].Soak, f.Stages[1].Soak = soak, soak
	now, line := map[string]rollout.State{}, []string{"c1000"}
	var past []map[string]rollout.State
	took := map[string]time.Time{}
	for _, s := range f.Stages {
		for _, c := range s.Clusters {
			now[c], took[c] = at("c1000", "c1000"), noon
		}
	}
	for minute := range 600 {
		clock := noon.Add(time.Duration(minute) * time.Minute)
		if minute%5 == 0 {
			line = append([]string{fmt.Sprint("c", 1001+minute)}, line...)
		}
		kept := map[string]rollout.State{}
		for i, stage := range f.Stages {
			for _, cluster := range stage.Clusters {
				s := now[cluster]
				w := &world{line: line[:slices.Index(line, s.Source)], records: now}
				if len(past) > 3 {
					w.records = past[len(past)-1-rng.IntN(3)]
				}
				c, err := fleet.Place{Fleet: f, Cluster: cluster, App: "shop"}.Choose(w, s, clock)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case c.Commit != "" && c.Waits == "":
					for _, before := range f.Stages[max(0, i-1)].Clusters {
						if b := now[before]; i > 0 && !b.HasSoaked(c.Commit) {
							t.Fatalf("seed %d: %s takes %s, which has not soaked in %s", seed, cluster, c.Commit, before)
						}
					}
					next := at(c.Commit)
					next.Stable.Since, next.Soaked, took[cluster] = clock, s.Soaked, clock
					now[cluster] = next
				case !s.HasSoaked(s.Source) && !clock.Before(s.Stable.Since.Add(soak)):
					s.Soaked = append([]rollout.Soaked{{Commit: s.Source}}, s.Soaked...)
					s.Soaked = s.Soaked[:min(10, len(s.Soaked))]
					now[cluster] = s
				}
				if clock.Sub(took[cluster]) > 50*time.Minute && minute > 150 {
					t.Fatalf("seed %d: %s has no new version since %s: %+v", seed, cluster, took[cluster], c)
				}
			}
		}
		under := map[string]int{}
		for _, cluster := range f.Stages[2].Clusters {
			if s := now[cluster]; !s.HasSoaked(s.Source) {
				if under[s.Source]++; under[s.Source] > 2 {
					t.Fatalf("seed %d: more than 50%% of the clusters have %s under way", seed, s.Source)
				}
			}
		}
		for cluster, s := range now {
			kept[cluster] = s
		}
		past = append(past, kept)
	}
}

// TestProposes checks that the cluster with the lowest rank proposes an approval. If the change does not concern this cluster, the next
// cluster proposes.
func TestProposes(t *testing.T) {
	f := stagesOf(rollout.Stage{Approve: rollout.ApproveMerge})
	w := &world{line: []string{"c3"}, inputs: map[string]fleet.Inputs{},
		records: map[string]rollout.State{"staging-eu": at("c3", "c3"), "staging-us": at("c3", "c3")}}
	proposes := func() (all []int) {
		for _, cluster := range f.Stages[2].Clusters {
			p := fleet.Place{Fleet: f, Cluster: cluster, App: "shop"}
			c, err := p.Choose(w, at("c1"), noon)
			if err != nil || c.Waits != "" && !strings.HasPrefix(c.Waits, "an approval") {
				t.Fatalf("%s: %+v, %v", cluster, c, err)
			}
			if order, rank := p.Ranked(); c.Proposes != nil {
				all = append(all, rank)
				compare.CheckNamed(t, "clusters of the approval", order[rank:], c.Proposes)
				compare.CheckNamed(t, "the recorded text, which differs from the text before the cluster's turn", c.Waits, c.Hold)
			}
		}
		slices.Sort(all)
		return all
	}
	compare.CheckNamed(t, "ranks", []int{0}, proposes())
	for _, cluster := range f.Stages[2].Clusters {
		if _, rank := (fleet.Place{Fleet: f, Cluster: cluster, App: "shop"}).Ranked(); rank == 0 {
			w.records[cluster], w.inputs[cluster+" c3"] = at("c1", "c1"), fleet.Inputs{Files: "fc1"}
		}
	}
	compare.CheckNamed(t, "ranks if the first does not change", []int{1}, proposes())
}
