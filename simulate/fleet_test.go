package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	gitsource "gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// fleetRenderer adds a ConfigMap with the content of base/config.
type fleetRenderer struct{ baseRenderer }

func (f fleetRenderer) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	r, err := f.baseRenderer.Render(tree, app, commit)
	if err != nil {
		return nil, err
	}
	entry, _, _ := tree.Lookup("base/config")
	config := blobOf(tree, entry)
	return remembered(fmt.Sprint("fleet ", app.Name, r.Files, r.Digest, config), app, commit, func() (*rollout.Render, error) {
		r.Files, r.Digest = append(r.Files, "base/config"), r.Digest+config
		slices.Sort(r.Files)
		r.Objects = append(r.Objects, objectOf(manifest("v1", "ConfigMap", app.Name, map[string]any{"data": map[string]any{"config": config}})))
		return r, nil
	})
}

// member is a cluster of a fleetWorld, with its reconciler.
type member struct {
	*Cluster
	name, folder string
	ahead        time.Duration // of the cluster's clock
	process      *Process
	parts        Parts
	poll         time.Time
	isDown       bool // no pod is ready
	isBlind      bool // the reconciler cannot read other clusters' state branches
	isMissing    bool // other reconcilers do not find the state branch
	seen         map[string]string
	past         []look // recent reads, on which a new record can depend
	apps         map[string]*appTruth
}

// look is a read of Git.
type look struct {
	at   time.Time
	main string
	seen map[string]string // heads of other clusters' state branches
}

// appTruth holds the facts about an app in a cluster. A content is a text that fleetWorld.content returns.
type appTruth struct {
	is             rollout.State
	well           string // content while the record is Healthy, or ""
	since, took    time.Time
	soaked, stable map[string]bool // contents
	verified       map[string]bool // versions
	under          string          // the stage's settings at the last entry that needed evidence; "" if unknown or without such an entry
}

// fleetWorld is a random world: eight clusters in three stages. Each app has a base and one overlay for each stage.
type fleetWorld struct {
	seed    uint64
	rng     *rand.Rand
	git     *memgit.Server
	now     time.Time
	members []*member
	line    []string       // commits of the users' branch, oldest first
	at      map[string]int // index in line
	fleets  map[string]*rollout.Fleet
	opened  map[string]bool // "member app content" for each promotion with through: entry
	base    []string
	serial  int
	pumps   bool
	brief   bool     // play skips the end, in which all clusters must take the last version
	soaks   []string // by stage
	approve string
	gone    string // a cluster that is in no stage
	most    string
	freeze  bool
	broken  bool
	log     bytes.Buffer
	trace   []string
	acts    map[string]int
	failure string
	read    func(m *member, k *peerGit)
	wrap    func(*Process, *reconciler.Options)
}

var fleetFolders = []string{"dev", "eu", "us", "prod"}

func fleetApps(folder string) []string {
	if folder == "us" || folder == "dev" {
		return []string{"a0", "a1"}
	}
	return []string{"a0", "a1", "a2"} // some clusters of the previous stage lack a2
}

func newFleetWorld(t testing.TB, seed uint64) *fleetWorld {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	w := &fleetWorld{seed: seed, rng: rng, now: began, at: map[string]int{}, fleets: map[string]*rollout.Fleet{}, opened: map[string]bool{},
		base: []string{"good0"}, acts: map[string]int{}, most: "40%", pumps: seed%3 == 2, approve: "auto",
		soaks: []string{[]string{"0s", "5m"}[rng.IntN(2)], []string{"5m", "20m"}[rng.IntN(2)], []string{"0s", "10m"}[rng.IntN(2)]}}
	w.git = memgit.New(w.moved)
	files := map[string]string{"base/version": "good0", "base/config": "c0"}
	for _, folder := range fleetFolders {
		for _, app := range fleetApps(folder) {
			files[folder+"/"+app+"/version"], files[folder+"/"+app+"/kustomization.yaml"] = "v0", "resources: []\n"
		}
	}
	late := rng.IntN(8)
	for i, name := range []string{"dev", "staging-eu", "staging-us", "prod-1", "prod-2", "prod-3", "prod-4", "prod-5"} {
		m := &member{name: name, folder: fleetFolders[min(i, 3)], seen: map[string]string{}, apps: map[string]*appTruth{}}
		if i == late {
			m.ahead = time.Duration(1-2*rng.IntN(2)) * 24 * time.Hour
		}
		m.Cluster = NewCluster(rand.New(rand.NewPCG(seed, uint64(i))), began.Add(m.ahead))
		m.Kube.Sparse = true
		m.Kube.Fate = func(version string) kube.Lifetime {
			return kube.Lifetime{Never: m.isDown || strings.Contains(version, "bad"), Ready: time.Second}
		}
		m.changed = func(what string) { m.touch(what) }
		m.parts = Parts{Git: w.git, Cluster: m.Cluster, Branch: Branch, Options: reconciler.Options{Renderer: fleetRenderer{}, Cluster: name,
			UID: name, Source: rollout.Source{Repo: "simulated", Branch: Branch}, Log: slog.New(slog.NewTextHandler(&w.log, nil))}}
		m.parts.Wrap = func(p *Process, o *reconciler.Options) {
			k := &peerGit{w: w, m: m, p: p}
			if o.Branches = k; w.read != nil {
				w.read(m, k)
			}
			if w.wrap != nil {
				w.wrap(p, o)
			}
		}
		for _, app := range fleetApps(m.folder) {
			m.apps[app] = &appTruth{soaked: map[string]bool{}, stable: map[string]bool{}, verified: map[string]bool{}}
		}
		w.members = append(w.members, m)
		files[rollout.ConfigPath(name)] = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\ninterval: 1m\napps:\n- {path: " +
			m.folder + "/*, namespace: " + namespace + "}\n"
	}
	files[rollout.FleetPath] = w.fleetFile()
	w.push("first version", files)
	return w
}

func (m *member) touch(what string) {
	if m.process == nil {
		return
	}
	for _, app := range fleetApps(m.folder) {
		if strings.Contains(what, app) || !strings.Contains(what, " a") {
			m.process.Touch(app)
		}
	}
}

func (w *fleetWorld) fleetFile() string {
	text := "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n"
	for i, name := range []string{"dev", "staging", "prod"} {
		var clusters []string
		for _, m := range w.members {
			if strings.HasPrefix(m.name, name) && m.name != w.gone {
				clusters = append(clusters, m.name)
			}
		}
		text += fmt.Sprintf("- {name: %s, clusters: [%s], requiredSoakTime: %s", name, strings.Join(clusters, ", "), w.soaks[i])
		if i == 2 {
			text += ", approve: " + w.approve + ", maxUpdate: " + w.most
		}
		text += "}\n"
	}
	if w.freeze {
		text += "freeze: {reason: holidays}\n"
	}
	if w.broken {
		text += "stages: [\n"
	}
	return text
}

func (w *fleetWorld) note(format string, args ...any) {
	w.trace = append(w.trace, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// push commits files to the users' branch. An empty content deletes the file.
func (w *fleetWorld) push(what string, files map[string]string) {
	e := edits(files)
	for name, content := range files {
		if content == "" {
			e[name] = nil
		}
	}
	id := w.git.Commit(memgit.Change{Branch: Branch, Author: "Ann", Message: what, When: w.now, Edits: e})
	w.at[id] = len(w.line)
	w.line = append(w.line, id)
	w.acts[what]++
	if len(files) < 9 {
		w.note("push %s %s: %s", rollout.ShortID(id), what, strings.ReplaceAll(fmt.Sprint(files), "\n", "; "))
	}
}

// content returns the version and the whole content of an app in a cluster, or "" if the cluster lacks the app.
func (w *fleetWorld) content(m *member, app, commit string) (version, all string) {
	own := w.file(commit, m.folder+"/"+app+"/version")
	if own == "" {
		return "", ""
	}
	if strings.HasPrefix(own, "invalid") {
		return "invalid", "invalid"
	}
	version = w.file(commit, "base/version") + "-" + own
	return version, version + "-" + w.file(commit, "base/config")
}

// file returns the content of a file, or "".
func (w *fleetWorld) file(commit, name string) string {
	c := w.git.Commits[commit]
	if c == nil {
		return ""
	}
	entry, found, _ := c.Lookup(name)
	if !found {
		return ""
	}
	return blobOf(c, entry)
}

// fleetAt returns a commit's fleet.yaml, or nil if the file is unusable.
func (w *fleetWorld) fleetAt(commit string) *rollout.Fleet {
	f, known := w.fleets[commit]
	if !known {
		f, _ = gitsource.ReadFleet(w.git.Commits[commit])
		w.fleets[commit] = f
	}
	return f
}

// peerGit reads other clusters' state branches. The function alter, if set, changes the records.
type peerGit struct {
	w     *fleetWorld
	m     *member
	p     *Process
	alter func(s *rollout.State, unread bool)
	faith bool // isBlind and isMissing have no effect
}

// Branches implements reconciler.Branches. Sometimes the answer is old.
func (k *peerGit) Branches(_ context.Context, _ string, known map[string]string) (map[string]string, error) {
	if err := k.p.gate(Effect{Verb: "read", Object: "state branches"}).Err; err != nil {
		return nil, err
	}
	if k.m.isBlind && !k.faith {
		return nil, errors.New("no answer")
	}
	heads := map[string]string{}
	for _, branch := range slices.Sorted(maps.Keys(known)) {
		isMissing := slices.ContainsFunc(k.w.members, func(o *member) bool { return o.isMissing && rollout.StateBranch(o.name) == branch })
		head := k.w.git.Head(branch)
		if old := known[branch]; old != "" && k.w.rng.IntN(8) == 0 {
			head = old
		}
		if head != "" && (!isMissing || k.faith) {
			heads[branch] = head
			k.m.seen[branch] = head
		}
	}
	return heads, nil
}

// Held implements reconciler.Branches.
func (k *peerGit) Held(id string) (reconciler.Snapshot, bool) {
	c := k.w.git.Commits[id]
	if c == nil {
		return nil, false
	}
	if k.alter != nil {
		return altered{c, k}, true
	}
	return c, true
}

// altered is a state branch. The function alter changes its records.
type altered struct {
	reconciler.Snapshot
	*peerGit
}

func (f altered) Lookup(name string) (rollout.Entry, bool, error) {
	e, found, err := f.Snapshot.Lookup(name)
	if strings.HasPrefix(name, "apps/") && found {
		e.ID = fmt.Sprintf("%t@%s@%s", f.m.isBlind, f.w.git.Head(Branch), e.ID)
	}
	return e, found, err
}

func (f altered) ReadBlob(id string) ([]byte, error) {
	data, err := f.Snapshot.ReadBlob(id[strings.LastIndex(id, "@")+1:])
	if err != nil || !strings.Contains(id, "@") {
		return data, err
	}
	s, err := rollout.ParseState("state", data)
	if err != nil {
		return nil, err
	}
	f.alter(s, f.m.isBlind)
	return s.Encode()
}

func (w *fleetWorld) start(m *member) {
	m.process, m.poll = Start(m.name, m.parts), w.now
	m.touch("")
}

// run lets all clusters work for a time.
func (w *fleetWorld) run(d time.Duration, faults bool) {
	for end := w.now.Add(d); w.failure == "" && w.now.Before(end); {
		for turns, moves := 0, true; moves && turns < 50; turns++ {
			moves = false
			for _, i := range w.rng.Perm(len(w.members)) {
				moves = w.turn(w.members[i], faults) || moves
			}
		}
		next := end
		for _, m := range w.members {
			due := rollout.Soonest(m.Kube.NextDue(), m.process.NextDue())
			if !due.IsZero() {
				next = rollout.Soonest(next, due.Add(-m.ahead))
			}
			next = rollout.Soonest(next, m.poll)
		}
		w.now = rollout.Later(next, w.now.Add(time.Millisecond))
		for _, m := range w.members {
			m.Kube.Now = w.now.Add(m.ahead)
		}
	}
}

// turn lets one cluster work, and reports whether anything was due. With faults, the reconciler sometimes dies, or an effect fails.
func (w *fleetWorld) turn(m *member, faults bool) bool {
	for m.Kube.Micro() {
	}
	due, polls := m.process.NextDue(), !w.now.Before(m.poll)
	if !polls && (due.IsZero() || due.After(m.Kube.Now)) {
		return false
	}
	if polls {
		m.poll = w.now.Add(time.Duration(50+w.rng.IntN(20)) * time.Second)
	}
	begin := []func() bool{func() bool { return m.process.Begin(m.Kube.Now, polls) }}
	if w.pumps {
		begin = nil
		for _, i := range append(w.rng.Perm(9), 0, 1, 2) {
			begin = append(begin, func() bool {
				return m.process.BeginTurn([]reconciler.Pump{reconciler.PumpIn, reconciler.PumpApps, reconciler.PumpOut}[i%3], m.Kube.Now)
			})
		}
	}
	var failed error
	for _, b := range begin {
		for ended := b(); !ended; {
			out := Outcome{}
			if faults && w.rng.IntN(500) == 0 {
				w.note("%s dies before %s", m.name, m.process.next)
				m.process.Kill()
				w.start(m)
				w.acts["crash"]++
				return true
			} else if faults && w.rng.IntN(300) == 0 {
				out.Err, out.After = errors.New("no answer"), w.rng.IntN(2) == 0
			}
			ended = m.process.Resume(out)
		}
		failed = errors.Join(failed, m.process.err)
		for w.pumps && m.Kube.Micro() {
		}
	}
	m.past = append(m.past, look{w.now, m.process.Clone.Main, maps.Clone(m.seen)})
	for failed == nil && len(m.past) > 1 && m.past[1].at.Before(w.now.Add(-time.Minute)) {
		m.past = m.past[1:]
	}
	return true
}

// moved checks each new record on a state branch.
func (w *fleetWorld) moved(_, branch, from, to string) {
	i := slices.IndexFunc(w.members, func(m *member) bool { return rollout.StateBranch(m.name) == branch })
	if i < 0 {
		return
	}
	m := w.members[i]
	w.observe(m)
	for _, app := range fleetApps(m.folder) {
		t, file := m.apps[app], rollout.StatePath(app)
		text := w.file(to, file)
		if text == "" || text == w.file(from, file) {
			continue
		}
		is, err := rollout.ParseState(file, []byte(text))
		if err != nil {
			w.failure = err.Error()
			return
		}
		was := t.is
		if is.Source != was.Source {
			w.took(m, app, was, *is)
		}
		if t.is = *is; is.Stable != nil && (was.Stable == nil || was.Stable.Commit != is.Stable.Commit) {
			t.well = ""
			w.observe(m)
			if t.well != "" && is.Stable.Commit == is.Source {
				t.since = is.Stable.Since.Add(-m.ahead)
			}
		}
	}
	w.observe(m)
}

// observe notes when each app became Healthy with its content, and which contents have soaked.
func (w *fleetWorld) observe(m *member) {
	for app, t := range m.apps {
		well := ""
		if t.is.Source != "" && t.is.Release == nil && t.is.Shown() == rollout.Healthy {
			_, well = w.content(m, app, t.is.Source)
		}
		if well != t.well {
			t.well, t.since = well, w.now
		}
		i := slices.Index([]string{"d", "s", "p"}, m.name[:1])
		soak, _ := time.ParseDuration(w.soaks[i])
		if well != "" && !w.now.Before(t.since.Add(soak-2*time.Second)) {
			t.soaked[well] = true
		}
		if t.is.Stable != nil {
			version, all := w.content(m, app, t.is.Stable.Commit)
			t.stable[all], t.verified[version] = true, true
		}
	}
}

// took records a failure if an app may not follow its new commit.
func (w *fleetWorld) took(m *member, app string, was, is rollout.State) {
	t := m.apps[app]
	_, all := w.content(m, app, is.Source)
	t.took, t.under = w.now, ""
	w.note("%s takes %s: %s (%s)", m.name, rollout.ShortID(is.Source), app, all)
	if t.stable[all] || t.soaked[all] || w.opened[m.name+" "+app+" "+all] {
		return // a rollback, a revert, proven content or an emergency
	}
	first := 0
	if len(m.past) > 0 {
		first = w.at[m.past[0].main]
	}
	problem, under := "", map[string]bool{}
	for _, main := range w.line[first:max(first, w.at[m.process.Clone.Main]+1)] {
		t.under = ""
		if problem = w.problem(m, app, was, is.Source, main); problem == "" {
			under[t.under] = true
		}
	}
	if len(under) != 1 { // the app may have followed any of these settings
		t.under = ""
	}
	if len(under) == 0 && w.failure == "" {
		w.failure = fmt.Sprintf("%s %s takes %s (%s): %s", m.name, app, rollout.ShortID(is.Source), all, problem)
	}
}

// problem returns why an app may not follow a commit while the users' branch has a given head.
func (w *fleetWorld) problem(m *member, app string, was rollout.State, commit, main string) string {
	f := w.fleetAt(main)
	if f == nil {
		return "fleet.yaml is unusable"
	}
	version, all := w.content(m, app, commit)
	before, old := w.content(m, app, was.Source)
	i := f.StageOf(m.name)
	switch {
	case was.Source != "" && all == old:
		return "the content is the same"
	case was.Source != "" && w.at[commit] < w.at[was.Source]:
		return "the commit is older"
	case was.Source != "" && version != before && !m.apps[app].verified[version] &&
		(f.Freeze != nil || w.file(main, rollout.FreezePath(m.name)) != ""):
		return "a freeze"
	case i < 0:
		return ""
	}
	why := ""
	if i > 0 {
		why = w.lacks(m, f.Stages[i-1].Clusters, app, commit)
	}
	for j := 0; why != ""; j++ {
		if j == len(w.line) {
			return why
		}
		if _, other := w.content(m, app, w.line[j]); other == all && w.lacks(m, f.Stages[i-1].Clusters, app, w.line[j]) == "" {
			why = ""
		}
	}
	stage := f.Stages[i]
	under, settings := 1, fmt.Sprint(stage)
	for _, o := range w.members {
		if ot := o.apps[app]; o != m && ot != nil && ot.under == settings && !ot.soaked[all] {
			if _, runs := w.content(o, app, ot.is.Source); runs == all {
				under++
			}
		}
	}
	if under > min(len(stage.Clusters), max(1, stage.MaxUpdate.RoundDown(len(stage.Clusters)))) {
		return fmt.Sprintf("%d clusters have it under way", under)
	}
	m.apps[app].under = settings
	return ""
}

// lacks returns why a cluster of the previous stage does not prove a commit, or "".
func (w *fleetWorld) lacks(m *member, before []string, app, commit string) string {
	for _, b := range w.members {
		if !slices.Contains(before, b.name) || b.apps[app] == nil {
			continue
		}
		w.observe(b)
		_, all := w.content(b, app, commit)
		if !b.apps[app].soaked[all] {
			return "it has not soaked in " + b.name
		}
		if len(m.past) == 0 {
			continue
		}
		file := rollout.StatePath(app)
		text := w.file(m.past[0].seen[rollout.StateBranch(b.name)], file)
		if s, err := rollout.ParseState(file, []byte(text)); err == nil {
			for _, r := range s.Rejected {
				if _, rejected := w.content(b, app, r.Commit); rejected == all {
					return b.name + " rejected it"
				}
			}
		}
	}
	return ""
}
