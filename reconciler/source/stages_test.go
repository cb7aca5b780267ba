package source_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/cohort"
	"gitrollout.dev/gitrollout/strategies/fleet"
)

const fleetHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n"

func asIs(d time.Duration) time.Duration { return d }

// TestFleetOfABranch checks the stage and the freeze that fleet.yaml gives a cluster. The longer of two freezes counts. The branch stays
// readable if fleet.yaml is unusable.
func TestFleetOfABranch(t *testing.T) {
	prod := "- {name: prod, clusters: ['pro?'], maxUpdate: 1}\n"
	b := changed(t, map[string]string{rollout.FleetPath: fleetHead + prod + "freeze: {reason: sale, until: 2027-01-01T00:00:00Z}\n"})
	if s := b.Stage(); s == nil || s.Name != "prod" || b.Unstaged != nil {
		t.Errorf("stage %+v, %v", s, b.Unstaged)
	}
	compare.CheckNamed(t, "freeze", "sale", b.Calendar("shop").Freeze.Reason)
	b = changed(t, map[string]string{rollout.FleetPath: fleetHead + prod + "freeze: {reason: sale, until: 2027-01-01T00:00:00Z}\n",
		rollout.FreezePath("prod"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\n"})
	compare.CheckNamed(t, "the longer freeze", "holidays", b.Calendar("shop").Freeze.Reason)
	b = changed(t, map[string]string{rollout.FleetPath: fleetHead + "- {name: dev, clusters: [dev]}\n"})
	if b.Stage() != nil || !rollout.IsInvalid(b.Unstaged) || len(b.Apps) != 2 {
		t.Errorf("an unusable fleet.yaml: %+v", b)
	}
	links := first.with("second", map[string]string{rollout.FleetPath: "../x", rollout.FreezePath("prod"): "../x"})
	b = open(t, linkedSettings{links}, nil)
	if !rollout.IsInvalid(b.Unstaged) || b.Freeze == nil {
		t.Errorf("symbolic links: %v, %+v", b.Unstaged, b.Freeze)
	}
	if b = changed(t, nil); b.Fleet != nil || b.Unstaged != nil || b.Calendar("shop").Freeze != nil {
		t.Errorf("without fleet.yaml: %+v", b)
	}
}

// TestInputsAt checks after which commits an app has different inputs. Only changes of its objects count. An unlisted app has no inputs.
// Without the cluster's configuration, no app has inputs. Inputs that cannot be built differ from all others.
func TestInputsAt(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n"
	was := first.with("one", map[string]string{config: configOf("- {path: apps/*, namespace: shops, directory: {}}\n"),
		"apps/shop/kustomization.yaml": "", "apps/shop/shop.yaml": manifest})
	for name, tt := range map[string]struct {
		edits map[string]string
		same  bool
	}{
		"another app":         {map[string]string{"apps/till/kustomization.yaml": "resources: []\n# comment\n"}, true},
		"a changed object":    {map[string]string{"apps/shop/shop.yaml": manifest + "data: {a: b}\n"}, false},
		"a comment":           {map[string]string{"apps/shop/shop.yaml": "# comment\n" + manifest}, true},
		"another file":        {map[string]string{"apps/shop/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"}, false},
		"another namespace":   {map[string]string{config: configOf("- {path: apps/*, namespace: others, directory: {}}\n")}, false},
		"an error":            {map[string]string{"apps/shop/shop.yaml": "kind: [\n"}, false},
		"no configuration":    {map[string]string{config: ""}, false},
		"an app less":         {map[string]string{config: configOf("- {path: apps/till, namespace: shops}\n")}, false},
		"another cluster":     {map[string]string{rollout.ConfigPath("dev"): configOf("- {path: apps/*}\n")}, true},
		"a promotion of prod": {map[string]string{rollout.PromotionPath("prod", "shop"): "decision: hold\n"}, true},
	} {
		// without a cache, because folder ids are equal in both commits
		reader := func() *source.Reader { return source.NewReader("prod", render.New(render.InProcess{})) }
		a, err := reader().InputsAt(was, "shop")
		must(t, err)
		b, err := reader().InputsAt(was.with("two", tt.edits), "shop")
		must(t, err)
		compare.CheckNamed(t, name, tt.same, a.Same(b))
		compare.CheckNamed(t, name+", listed", name != "an app less" && name != "no configuration", b != fleet.Inputs{})
	}
}

// TestPrepareInAStage checks the input of commands. They read no other cluster, so they read from the record whether an app waits for a
// stage. During a release, a newer commit waits too, even a revert. In phase Degraded, a revert does not wait.
func TestPrepareInAStage(t *testing.T) {
	b := changed(t, map[string]string{rollout.ConfigPath("dev"): configOf("- {path: apps/*}\n"),
		rollout.FleetPath: fleetHead + "- {name: dev, clusters: [dev]}\n- {name: prod, clusters: [prod], requiredSoakTime: 1h}\n"})
	w := rollout.Workload{Namespace: "shops", Name: "shop"}
	head := func(hash rollout.Hash) strategies.Head {
		c := rollout.Commit{ID: "changed", Author: "Ann"}
		return strategies.Head{Commit: c, Render: &rollout.Render{Commit: c, Specs: []rollout.Spec{{Workload: w}},
			Templates: map[rollout.Workload]rollout.Hash{w: hash}}}
	}
	stable := &rollout.Release{Hash: rollout.ReleaseHash(map[rollout.Workload]rollout.Hash{w: "h1-a"}), Commit: "first"}
	rest := rollout.State{Phase: rollout.Healthy, Source: "first", Stable: stable}
	flight := rollout.State{Phase: rollout.Paused, Source: "second", Stable: stable, Release: &rollout.Release{Hash: "h1-c"}}
	degraded := rollout.State{Phase: rollout.Degraded, Source: "first", Stable: stable,
		Rejected: []rollout.Rejection{{Hash: head("h1-c").Render.Release(), Commit: "second"}}}
	held := func(reason rollout.HeldReason, message string) rollout.State {
		s := rest
		s.Held = &rollout.Held{Reason: reason, Message: message, Commit: "older", Author: "Bob"}
		return s
	}
	entry := func(p *rollout.Promotion) *rollout.Promotion {
		p.Decision, p.Through = rollout.Promote, rollout.ThroughEntry
		return p
	}
	for name, tt := range map[string]struct {
		state rollout.State
		head  strategies.Head
		p     *rollout.Promotion
		want  *cohort.Entry
	}{
		"at rest": {rest, head("h1-b"), nil, nil},
		"held": {held(rollout.HeldStage, "release h1-x of older by Bob waits for stage dev"), head("h1-b"), nil,
			&cohort.Entry{Held: rollout.HeldStage, Waits: "stage dev", Hold: "stage dev", Release: "h1-x",
				Commit: rollout.Commit{ID: "older", Author: "Bob"}}},
		"held, with a promotion": {held(rollout.HeldStage, "release h1-x of older by Bob waits for stage dev"), head("h1-b"),
			entry(&rollout.Promotion{Release: "h1-x", Digest: "d"}), &cohort.Entry{Held: rollout.HeldStage, Open: true, Waits: "stage dev",
				Hold: "stage dev", Release: "h1-x", Commit: rollout.Commit{ID: "older", Author: "Bob"}}},
		"no stages": {held(rollout.HeldFleet, "release h1-x of older by Bob waits for usable stages: x"), head("h1-b"), nil,
			&cohort.Entry{Held: rollout.HeldFleet, Waits: "usable stages: x", Hold: "usable stages: x", Release: "h1-x",
				Commit: rollout.Commit{ID: "older", Author: "Bob"}}},
		"in flight": {flight, head("h1-b"), nil, &cohort.Entry{Held: rollout.HeldStage, Waits: "the stage before",
			Release: head("h1-b").Render.Release(), Commit: rollout.Commit{ID: "changed", Author: "Ann"}}},
		"in flight, a revert": {flight, head("h1-a"), nil, &cohort.Entry{Held: rollout.HeldStage, Waits: "the stage before",
			Release: stable.Hash, Commit: rollout.Commit{ID: "changed", Author: "Ann"}}},
		"degraded by an older commit": {degraded, head("h1-b"), nil, &cohort.Entry{Held: rollout.HeldStage, Waits: "the stage before",
			Release: head("h1-b").Render.Release(), Commit: rollout.Commit{ID: "changed", Author: "Ann"}}},
		"degraded by the head":   {degraded, head("h1-c"), nil, nil},
		"degraded, and a revert": {degraded, head("h1-a"), nil, nil},
	} {
		a := source.Prepare(b, b.Apps[0], tt.state, tt.head, source.Promotion{File: tt.p}, source.Trust{})
		compare.CheckNamed(t, name, tt.want, a.Entry)
		compare.CheckNamed(t, name+", stage", "prod", a.Stage.Name)
	}
	approval := &cohort.Entry{Held: rollout.HeldStage, Waits: "an approval for stage prod", Release: head("h1-b").Render.Release(),
		Commit: rollout.Commit{ID: "changed", Author: "Ann"}}
	for approve, want := range map[rollout.Approval]*cohort.Entry{rollout.ApproveAuto: nil, rollout.ApproveMerge: approval} {
		stage := "- {name: prod, clusters: [prod], approve: " + string(approve) + "}\n"
		only := changed(t, map[string]string{rollout.FleetPath: fleetHead + stage})
		a := source.Prepare(only, only.Apps[0], flight, head("h1-b"), source.Promotion{}, source.Trust{})
		compare.CheckNamed(t, "in flight in the first stage, approve: "+string(approve), want, a.Entry)
	}
	first := rollout.State{Phase: rollout.Pending}
	first.Held = &rollout.Held{Reason: rollout.HeldStage, Message: "release c1-b of changed by Ann waits for stage dev", Commit: "changed"}
	a := source.Prepare(b, b.Apps[0], first, head("h1-b"), source.Promotion{}, source.Trust{})
	if rollout.ReasonOf(a.Head.Err) != rollout.HeldStage || a.Entry == nil || a.Entry.Open || a.Entry.Release != "c1-b" {
		t.Errorf("a first deployment: %v, %+v", a.Head.Err, a.Entry)
	}
}

// unready has records by cluster. For other clusters, it returns ErrNotReady.
type unready map[string]rollout.State

func (u unready) States(cluster string) (func(app string) (rollout.State, bool), error) {
	s, has := u[cluster]
	if !has {
		return nil, source.ErrNotReady
	}
	return func(string) (rollout.State, bool) { return s, true }, nil
}

// TestStagesOf checks which commit an app takes. While another cluster's record is not ready, an app at rest stays as it is, and a new app
// gets an error. Only commits that change the app's files count.
func TestStagesOf(t *testing.T) {
	files := map[string]string{rollout.ConfigPath("dev"): configOf("- {path: apps/*}\n"),
		rollout.FleetPath: fleetHead + "- {name: dev, clusters: [dev]}\n- {name: prod, clusters: [prod]}\n"}
	line := []source.Snapshot{first.with("c1", files)}
	for _, c := range []struct{ id, file string }{{"c2", "apps/shop/a"}, {"c3", "apps/till/a"}, {"c4", "apps/shop/b"}, {"c5", "README"}} {
		line = append(line, line[len(line)-1].(commit).with(c.id, map[string]string{c.file: c.id}))
	}
	b := open(t, line[4], nil)
	app, listed := b.Find("shop")
	if !listed {
		t.Fatal("no shop")
	}
	contents := map[string]rollout.Hash{}
	renderOf := func(id string) *rollout.Render {
		return &rollout.Render{Commit: rollout.Commit{ID: id}, Files: []string{"apps/shop/a", "apps/shop/b"}, Digest: id,
			Content: cmp.Or(contents[id], "c1-0000000004")}
	}
	peers := unready{}
	x := &source.Stages{Reader: source.NewReader("prod", &builds{}), Peers: peers, Spread: asIs,
		Line: func(_ *source.Branch, _, from string) ([]source.Snapshot, error) { return line[from[1]-'1':], nil },
		Inputs: func(cluster, _, commit string) (fleet.Inputs, error) {
			if cluster == "prod" && commit == "c5" {
				commit = "c4"
			}
			return fleet.Inputs{Files: map[string]string{"c3": "c2", "c5": "c4"}[commit] + "-" + commit}, nil
		},
		Render: func(_ rollout.App, id string) (*rollout.Render, error) {
			if id == "" {
				return nil, errors.New("no commit is recorded")
			}
			return renderOf(id), nil
		},
		Tree: func(id string) (source.Snapshot, error) { return line[id[1]-'1'], nil },
	}
	rest := rollout.State{Phase: rollout.Healthy, Source: "c1"}
	head := strategies.Head{Commit: rollout.Commit{ID: "c4"}, Render: renderOf("c4")}
	got, e, err := x.Of(b, app, rest, head, nil, noon)
	if err != nil || got.Render != head.Render || e == nil || e.Open || e.Hold != "" || !e.Due.Equal(noon.Add(5*time.Second)) {
		t.Errorf("not ready: %+v, %+v, %v", got, e, err)
	}
	if _, e, err = x.Of(b, app, rollout.State{}, head, nil, noon); !errors.Is(err, source.ErrNotReady) || e == nil {
		t.Errorf("a new app: %+v, %v", e, err)
	}
	peers["dev"] = rollout.State{Source: "c4", Soaked: []rollout.Soaked{{Commit: "c2"}}}
	got, e, err = x.Of(b, app, rest, head, nil, noon)
	if err != nil || got.Commit.ID != "c2" || got.Render == nil || !e.Open {
		t.Errorf("an older commit: %+v, %+v, %v", got, e, err)
	}
	rest.Source = "c2"
	got, e, err = x.Of(b, app, rest, head, nil, noon)
	if err != nil || got.Render != head.Render || e.Open || e.Hold != "stage dev" || !e.Due.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("nothing newer is proven: %+v, %+v, %v", got, e, err)
	}
	peers["dev"] = rollout.State{Source: "c5", Soaked: []rollout.Soaked{{Commit: "c5"}}}
	if got, e, err = x.Of(b, app, rest, head, nil, noon); err != nil || got.Render != head.Render || !e.Open {
		t.Errorf("a later commit with the same inputs here: %+v, %+v, %v", got, e, err)
	}
	b.Fleet.Stages[1].Approve, rest.Stable, rest.Source = rollout.ApproveMerge, &rollout.Release{Hash: "v1"}, "c2"
	peers["dev"] = rollout.State{Source: "c4"}
	p := &rollout.Promotion{Release: head.Render.Version(), Decision: rollout.Promote, Through: rollout.ThroughEntry, Commit: "c4"}
	if _, e, err = x.Of(b, app, rest, head, p, noon); e.Open || e.Waits == "" || err != nil {
		t.Errorf("an approval before the evidence: %+v, %v", e, err)
	}
	peers["dev"] = rollout.State{Source: "c4", Soaked: []rollout.Soaked{{Commit: "c4"}}}
	if _, e, err = x.Of(b, app, rest, head, p, noon); !e.Open || err != nil { // Inputs returns no version here
		t.Errorf("an approval: %+v, %v", e, err)
	}
	p.Release = "h1-other"
	if _, e, err = x.Of(b, app, rest, head, p, noon); e.Open || err != nil {
		t.Errorf("an approval whose release is of another commit: %+v, %v", e, err)
	}
	peers["dev"], p.Release = rollout.State{Source: "c4"}, head.Render.Version()
	p.At, p.Digest = "2026-11-20T12:00:00Z", "d"
	if _, e, err = x.Of(b, app, rest, head, p, noon); !e.Open || err != nil {
		t.Errorf("a user's promotion: %+v, %v", e, err)
	}
	p.Commit = "c2"
	if _, e, err = x.Of(b, app, rest, head, p, noon); e.Open || err != nil {
		t.Errorf("a user's promotion of an older commit with the same version: %+v, %v", e, err)
	}
	peers["dev"] = rollout.State{Source: "c4", Soaked: []rollout.Soaked{{Commit: "c4"}, {Commit: "c2"}}}
	older := &rollout.Promotion{Release: "c1-0000000002", Decision: rollout.Promote, Through: rollout.ThroughEntry, Commit: "c2"}
	contents["c2"], rest.Source = older.Release, "c1"
	if _, e, err = x.Of(b, app, rest, head, older, noon); !e.Open || e.Commit.ID != "c2" || err != nil {
		t.Errorf("an approval of an older commit: %+v, %v", e, err)
	}
	rest.Rejected = []rollout.Rejection{{Hash: older.Release, Commit: "c3"}}
	if _, e, err = x.Of(b, app, rest, head, older, noon); e.Open || e.Commit.ID != "c4" || len(e.Versions) == 0 || err != nil {
		t.Errorf("an approval of a version that is rejected here: %+v, %v", e, err)
	}
	rest.Source, rest.Rejected = "c2", nil
	p.Commit, rest.Stable = "", &rollout.Release{Hash: head.Render.Version()}
	if _, e, err = x.Of(b, app, rest, head, p, noon); e.Open || err != nil {
		t.Errorf("a promotion of the stable version: %+v, %v", e, err)
	}
	rest.Source = "c4"
	if _, e, err = x.Of(b, app, rest, head, nil, noon); e != nil || err != nil {
		t.Errorf("nothing newer: %+v, %v", e, err)
	}
}

// byBot is a commit by a bot.
type byBot struct{ commit }

func (b byBot) Commit() rollout.Commit { return rollout.Commit{ID: b.id, Author: "Bot"} }

// TestAuthorBeforeTheNewestCommits checks that the author is unknown if a commit's content may be older than the newest 500 commits.
func TestAuthorBeforeTheNewestCommits(t *testing.T) {
	for between, want := range map[int]string{10: "Bot", 600: rollout.UnknownAuthor} {
		files := map[string]string{rollout.ConfigPath("dev"): configOf("- {path: apps/*}\n"),
			rollout.FleetPath: fleetHead + "- {name: dev, clusters: [dev]}\n- {name: prod, clusters: [prod]}\n"}
		last, contents := first.with("c0", files), map[string]string{"c0": "v1", "head": "v3"}
		line := []source.Snapshot{last}
		add := func(id, file string) {
			last = last.with(id, map[string]string{file: id})
			line = append(line, last)
		}
		add("bot", "apps/shop/a")
		line[1] = byBot{last}
		for i := range between {
			add(fmt.Sprint("c", i+1), "README")
		}
		add("comment", "apps/shop/b")
		add("head", "apps/shop/a")
		render := func(id string) *rollout.Render {
			return &rollout.Render{Commit: rollout.Commit{ID: id}, Files: []string{"apps/shop/a", "apps/shop/b"}, Digest: id}
		}
		b := open(t, line[len(line)-1], nil)
		app, _ := b.Find("shop")
		x := &source.Stages{Reader: source.NewReader("prod", &builds{}), Spread: asIs,
			Peers: unready{"dev": {Source: "head", Soaked: []rollout.Soaked{{Commit: "comment"}}}},
			Line:  func(*source.Branch, string, string) ([]source.Snapshot, error) { return line, nil },
			Inputs: func(_, _, commit string) (fleet.Inputs, error) {
				return fleet.Inputs{Files: cmp.Or(contents[commit], "v2")}, nil
			},
			Render: func(_ rollout.App, id string) (*rollout.Render, error) { return render(id), nil },
			Tree: func(id string) (source.Snapshot, error) {
				i := slices.IndexFunc(line, func(s source.Snapshot) bool { return s.Commit().ID == id })
				return line[i], nil
			},
		}
		head := strategies.Head{Commit: rollout.Commit{ID: "head"}, Render: render("head")}
		got, _, err := x.Of(b, app, rollout.State{Phase: rollout.Healthy, Source: "c0"}, head, nil, noon)
		must(t, err)
		compare.CheckNamed(t, "commit and author", []string{"comment", want, want},
			[]string{got.Commit.ID, got.Commit.Author, got.Render.Commit.Author})
	}
}

// TestChecksOfAnOlderCommit checks that an app is held if an older proven commit is forbidden, or has a Secret without a key. A rollback to
// the stable version is never held.
func TestChecksOfAnOlderCommit(t *testing.T) {
	files := map[string]string{rollout.ConfigPath("dev"): configOf("- {path: apps/*}\n"),
		rollout.FleetPath: fleetHead + "- {name: dev, clusters: [dev]}\n- {name: prod, clusters: [prod]}\n"}
	line := []source.Snapshot{first.with("c0", files)}
	for _, id := range []string{"c1", "c2", "c3"} {
		line = append(line, line[len(line)-1].(commit).with(id, map[string]string{"apps/shop/a": id}))
	}
	b := open(t, line[3], nil)
	app, _ := b.Find("shop")
	rest := rollout.State{Phase: rollout.Healthy, Source: "c1", Stable: &rollout.Release{Hash: "h1-b", Commit: "c1"}}
	flight := rollout.State{Phase: rollout.Paused, Source: "c1", Release: &rollout.Release{Hash: "h1-b", Commit: "c1"},
		Stable: &rollout.Release{Hash: "h1-a", Commit: "c0"}}
	for name, tt := range map[string]struct {
		state    rollout.State
		within   string
		unopened []string
		stable   string // its digest; "" if not ready
		held     rollout.HeldReason
		unknown  bool
	}{
		"allowed":                     {rest, "shops", nil, "c0", "", false},
		"another namespace":           {rest, "others", nil, "c0", rollout.HeldForbidden, false},
		"no key":                      {rest, "shops", []string{"apps/shop/secret.yaml"}, "c0", rollout.HeldUndecryptable, false},
		"a rollback, no key":          {flight, "shops", []string{"apps/shop/secret.yaml"}, "c2", "", false},
		"a rollback, forbidden":       {flight, "others", nil, "c2", "", false},
		"in flight, forbidden":        {flight, "others", nil, "c0", rollout.HeldForbidden, false},
		"in flight, not rendered yet": {flight, "others", nil, "", "", true},
	} {
		render := func(id string) *rollout.Render {
			return &rollout.Render{App: rollout.App{Name: "shop", Namespace: "shops"}, Commit: rollout.Commit{ID: id},
				Files: []string{"apps/shop/a"}, Digest: id, Unopened: tt.unopened,
				Objects: []rollout.Object{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shops"}}}}
		}
		x := &source.Stages{Reader: source.NewReader("prod", &builds{}).In("gitrollout", []string{tt.within}),
			Spread: asIs,
			Peers:  unready{"dev": {Source: "c3", Soaked: []rollout.Soaked{{Commit: "c2"}}}},
			Line:   func(_ *source.Branch, _, from string) ([]source.Snapshot, error) { return line[from[1]-'0':], nil },
			Inputs: func(_, _, commit string) (fleet.Inputs, error) {
				return fleet.Inputs{Files: commit}, nil
			},
			Render: func(_ rollout.App, id string) (*rollout.Render, error) {
				r := render(id)
				if r.Digest = cmp.Or(map[string]string{"c0": tt.stable}[id], id); id == "c0" && tt.stable == "" {
					return nil, source.ErrNotReady
				}
				return r, nil
			},
			Tree: func(id string) (source.Snapshot, error) { return line[id[1]-'0'], nil },
		}
		head := strategies.Head{Commit: rollout.Commit{ID: "c3"}, Render: render("c3")}
		got, e, err := x.Of(b, app, tt.state, head, nil, noon)
		if tt.unknown {
			if err != nil || e.Open || e.Hold != "" || got.Render != head.Render || !e.Due.Equal(noon.Add(5*time.Second)) {
				t.Errorf("%s: %+v, %+v, %v", name, got, e, err)
			}
			continue
		}
		if err != nil || e == nil || !e.Open || got.Commit.ID != "c2" || (got.Render == nil) != (tt.held != "") {
			t.Errorf("%s: %+v, %+v, %v", name, got, e, err)
		}
		if got.Err != nil || tt.held != "" {
			compare.CheckNamed(t, name, tt.held, rollout.ReasonOf(got.Err))
		}
	}
}

// linkedSettings has symbolic links at the paths of fleet.yaml and freeze.yaml.
type linkedSettings struct{ commit }

func (l linkedSettings) Lookup(name string) (rollout.Entry, bool, error) {
	e, found, err := l.commit.Lookup(name)
	if found && (name == rollout.FleetPath || name == rollout.FreezePath("prod")) {
		e.Kind = rollout.Symlink
	}
	return e, found, err
}
