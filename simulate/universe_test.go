package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	gitsource "gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// chaos lists the kinds of faults and users' actions in a world, besides releases.
type chaos struct {
	processes int  // the number of reconcilers for the same cluster
	kills     bool // pods die or become unready
	scales    bool // an autoscaler changes replicas
	bad       bool // some versions never become ready
	lag       bool // controllers see other controllers' writes late
	late      bool // ReplicaSets get pods that were requested before a scale-down
	pushes    bool // users mostly push and revert, in every phase of a release
	crashes   bool // processes are killed between any two effects
	git       bool // Git is down for minutes, refuses pushes, and loses responses to pushes
	api       bool // the API server responds with 409, 429 or 500, or does not respond
	stale     bool // the processes' watches break for a while
	clock     bool // the processes' clocks are wrong, and jump
	rewrites  bool // main is force-pushed
	meddling  bool // the state branch is deleted, rolled back and edited by hand; objects are deleted and edited

	experiments bool // steps have experiments
	analyses    bool // releases have analyses at steps, in the background and around switches
	decays      bool // releases are watched after the promotion, and some versions become bad then
	humans      bool // users edit steps, settings, names, replicas and the configuration, and merge proposals late
	edits       bool // users remove or add all steps during a release
	sets        kind // turns Deployments into StatefulSets or another kind; nil keeps Deployments
	hooks       bool // apps have hooks (Jobs before and after releases)
	plain       bool // no app has a Rollout document
	pumps       bool // a process's pumps run at the same time, and Git is slow during app passes
	kinds       bool // the kind of one app's workloads cannot be watched
	freezes     bool // users freeze all releases for a while
	owners      bool // other field managers also apply fields of ConfigMaps
	glass       bool // users abort releases by an annotation in the cluster (break glass), sometimes with wrong values
	now         bool // users also run "abort --break-glass --now" from clones
	restarts    bool // users restart the pods of stable versions
	spoils      bool // some or all pods of a stable version break, and later pods of this version never become ready
}

// universe is one random world: Git, a cluster, reconcilers and users.
type universe struct {
	rng      *rand.Rand
	chaos    chaos
	git      *memgit.Server
	cluster  *Cluster
	kube     *kube.Cluster
	broken   int // how often watches have been broken
	parts    Parts
	quick    *shortcut // nil if the seed uses the real renderer
	procs    []*actor
	user     userCommand
	clones   []rollout.Heads          // the branches at earlier times, as users' clones have them
	sources  map[string]source        // contents of main by commit
	history  []string                 // the commits of main, oldest first
	scaled   map[rollout.Workload]int // replicas that a scaler or a user set last
	ids      map[string]string        // each app's first name, by every name that the app had
	removed  map[string]bool          // names of apps whose records were removed
	proposed []proposal               // all proposals so far
	played   map[string]int           // how often each event has happened
	bad      map[string]bool          // versions whose pods never become ready
	weak     map[string]int           // how many of a version's next pods never become ready
	serial   int
	calm     bool      // no faults happen while calm is set
	gitDown  time.Time // until then Git does not respond
	pushDown time.Time // until then Git can be read, but refuses pushes
	apiDown  time.Time // until then the API server refuses everything
	away     time.Time // until then no process runs
	apiFault time.Time // the last failure of the API server
	unread   string    // the app whose kind cannot be watched, "" if none
	spoiled  bool      // pods broke or became ready after the last app passes began
	moves    int       // how often a branch moved
	oracle   *oracle
	promises *promises
	labs     map[string]*lab // the processes' Analyzers, by the process's name
	ends     map[string]rollout.JobState
	others   others // fields of other field managers

	verbose bool
	trace   []string
	failure string
}

// actor is a process in a world, with data that the checks note about this process.
type actor struct {
	*Process
	skew    time.Duration // the process's time minus the cluster's time
	hasty   int           // number of successive failed passes that requested another pass immediately
	missed  bool          // the watches missed changes: all apps are due when the watches work again
	blind   bool          // at the start of the pass, the process knew that its watches were broken
	commits map[string]int
	records map[string]int              // number of records when the app passes began, by app
	seen    string                      // main's commit at the last pass
	looked  string                      // main's commit at the last completed fetch
	known   string                      // main's commit in this turn's app passes; "" if a fetch was running
	unread  time.Time                   // when a turn last ended because a commit was not fetched or rendered yet
	allOn   map[rollout.Workload]string // the version that all users had when the app passes began
	visits  time.Time                   // when the app passes began, by the process's clock
	empty   []rollout.Workload          // workloads without replicas when the app passes began
}

// newUniverse returns a world. The seed determines the whole run.
func newUniverse(seed uint64, c chaos, m mutation, verbose bool) *universe {
	u := &universe{
		rng: rand.New(rand.NewPCG(seed, 3)), chaos: c, sources: map[string]source{}, bad: map[string]bool{},
		weak: map[string]int{}, scaled: map[rollout.Workload]int{}, ids: map[string]string{},
		removed: map[string]bool{}, played: map[string]int{}, others: others{}, verbose: verbose,
	}
	u.git = memgit.New(u.branchMoved)
	u.cluster = NewCluster(u.rng, noon)
	u.kube = u.cluster.Kube
	u.kube.Lag, u.kube.Late, u.kube.Restarts = c.lag, c.late, true
	u.kube.Fate = func(version string) kube.Lifetime {
		u.weak[version]--
		return kube.Lifetime{Never: u.bad[version] || u.weak[version] >= 0, Ready: time.Duration(u.rng.IntN(4)) * time.Second}
	}
	var renderer reconciler.Renderer = render.New(render.InProcess{})
	if seed%10 != 0 {
		u.quick = newShortcut()
		renderer = u.quick
	}
	u.parts = Parts{Git: u.git, Cluster: u.cluster, Branch: testBranch, Options: reconciler.Options{
		Cluster: testCluster, UID: "uid", Source: rollout.Source{Repo: "memory", Branch: testBranch},
		Renderer: renderer, Log: slog.New(slog.DiscardHandler),
	}}
	u.labs = map[string]*lab{}
	u.parts.Wrap = func(p *Process, o *reconciler.Options) {
		if c.analyses || c.decays {
			u.labs[p.Name] = &lab{u: u, process: p}
			o.Analyzer = u.labs[p.Name]
		}
		if p.Name == userName {
			u.asUser(p, o)
		}
		if c.kinds {
			observes(halfBlind)(starting{p, o, u})
		}
		if m.wrap != nil {
			m.wrap(starting{p, o, u})
		}
	}
	u.oracle, u.promises = newOracle(u, renderer), newPromises(u)
	u.cluster.changed, u.cluster.wrote = u.changed, (*View).learn
	u.cluster.writing = func(v *View, app string, o rollout.Object) {
		u.oracle.checkWrite(v, app, o)
		u.others.applied(u.cluster.objects[o.Ref()], o)
	}
	for i := range max(1, c.processes) {
		u.procs = append(u.procs, &actor{})
		u.restart(u.procs[i], fmt.Sprintf("p%d", i))
		if c.clock {
			u.procs[i].skew = time.Duration(u.rng.IntN(120)-60) * time.Second
		}
	}
	u.cluster.Ends = u.endOf
	first := randomSource(u.rng)
	for i := range first.apps {
		if c.hooks {
			first.apps[i].hooks = randomHooks(u.rng, first.apps[i].id)
		}
		u.ids[first.apps[i].name] = first.apps[i].id
		for j := range first.apps[i].workloads {
			w := &first.apps[i].workloads[j]
			w.plain = c.plain
			if c.sets != nil {
				c.sets(w, u.rng)
				w.randomMatches(u.rng)
			}
			for c.experiments && c.glass && (!w.isRouted() || w.canary["dynamicStableScale"] == true) {
				*w = randomWorkload(u.rng, w.name) // experiments of other workloads have no weights
			}
			if c.experiments && w.canary != nil {
				w.canary["steps"] = randomExperiments(u.rng, w.canary, w.steps())
			}
			if c.analyses {
				randomAnalyses(u.rng, w)
			}
			if c.decays {
				randomWatch(u.rng, w)
			}
		}
	}
	if w := first.apps[0].workloads[0]; c.humans && seed%4 == 0 {
		u.cluster.foreign = map[rollout.Ref]string{w.workload().Ref(): "Flagger"}
	}
	u.push(first, "first")
	return u
}

func (u *universe) restart(a *actor, name string) {
	a.Process, a.seen, a.looked = Start(name, u.parts), "", ""
}

func (u *universe) note(format string, args ...any) {
	if u.verbose {
		u.trace = append(u.trace, fmt.Sprintf(format, args...))
	}
}

// fail records the first violation.
func (u *universe) fail(format string, args ...any) {
	if u.failure == "" {
		u.failure = fmt.Sprintf(format, args...)
		u.note("VIOLATION: %s", u.failure)
	}
}

// changed tells the processes and the checks about each change in the cluster.
func (u *universe) changed(what string) {
	u.note("    %s", what)
	for _, a := range u.procs {
		if a.Process == nil {
			continue
		}
		if a.View.Stale {
			a.missed = true
			continue
		}
		u.touch(a)
	}
	u.spoiled = u.spoiled || strings.HasSuffix(what, " ready")
	u.promises.checkRestart(what)
	u.oracle.checkPods()
	u.oracle.checkJobs()
	u.promises.inCluster()
	u.promises.checkOrder(what)
}

func (u *universe) touch(a *actor) {
	for _, app := range u.head().apps {
		a.Touch(app.name)
	}
	for app := range u.oracle.states { // also apps that left Git: watches still report their objects
		a.Touch(app)
	}
}

func (u *universe) branchMoved(by, branch, from, to string) {
	u.moves++
	u.note("  %s moves %s from %s to %s: %s", by, branch, rollout.ShortID(from), rollout.ShortID(to), u.git.Subject(to))
	u.propose(branch, to)
	if rollout.IsProposal(branch) && from != "" && to != "" {
		u.played["a proposal replaced"]++
	}
	if branch == stateBranch {
		u.oracle.checkState(by, from, to)
	}
}

// head returns the content of the newest commit of main.
func (u *universe) head() source { return u.sources[u.git.Head(testBranch)] }

func (u *universe) push(s source, what string) {
	edits := s.files()
	for path := range u.git.Files(u.git.Head(testBranch)) {
		if _, named := edits[path]; !named {
			edits[path] = nil
		}
	}
	u.serial++
	id := u.git.Commit(memgit.Change{
		Branch: testBranch, Author: "Ann", Message: fmt.Sprintf("%s %d", what, u.serial), When: u.kube.Now, Edits: edits,
	})
	u.sources[id] = s
	u.history = append(u.history, id)
	if u.quick != nil {
		u.quick.learn(u.git.Commits[id], s)
	}
	u.promises.asked()
}

// edit changes a copy of the head's content, and pushes the copy.
func (u *universe) edit(what string, change func(*source)) {
	next := u.head().clone()
	change(&next)
	u.note("PEOPLE %s", what)
	u.push(next, what)
}

// now returns the time that a process's clock shows.
func (u *universe) now(a *actor) time.Time { return u.kube.Now.Add(a.skew) }

// begin starts a pass, with a fetch in two of three cases.
func (u *universe) begin(a *actor) {
	fetch := u.rng.IntN(3) > 0
	u.note("PASS of %s, fetch %t", a.Name, fetch)
	a.blind = a.View.Unseen != ""
	u.pass(a, fetch)
}

// ripen requests a pass for each app with a finished measurement.
func (u *universe) ripen() {
	for _, l := range u.labs {
		for _, t := range l.tasks {
			if !t.due.After(u.kube.Now) {
				l.process.Touch(t.app)
			}
		}
	}
}

// isRipe reports whether a finished measurement has not been read yet.
func (u *universe) isRipe() bool {
	for _, l := range u.labs {
		if slices.ContainsFunc(l.tasks, func(t task) bool { return !t.due.After(u.kube.Now) }) {
			return true
		}
	}
	return false
}

// turn begins a turn of a random idle pump. Turns of the process's other pumps may be running.
func (u *universe) turn(a *actor) {
	isStopped := func(p reconciler.Pump) bool { return slices.Contains(a.Stopped(), string(p)) }
	pumps := slices.DeleteFunc([]reconciler.Pump{reconciler.PumpIn, reconciler.PumpApps, reconciler.PumpOut}, isStopped)
	if len(pumps) == 0 {
		return
	}
	pump := pumps[u.rng.IntN(len(pumps))]
	u.ripen()
	u.note("TURN of %s of %s beside %v", pump, a.Name, a.Stopped())
	switch pump {
	case reconciler.PumpApps:
		if a.known = ""; !isStopped(reconciler.PumpIn) {
			a.known = a.looked
		}
		u.beginVisits(a)
	case reconciler.PumpOut:
		a.commits = map[string]int{} // each push may have one transition per app
	}
	if a.BeginTurn(pump, u.now(a)) {
		u.turned(a, string(pump))
	}
}

// turned checks the end of a pump's turn. App passes with main's newest commit must have applied every rollback that is due.
func (u *universe) turned(a *actor, pump string) {
	u.note("  %s of %s ends: %v", pump, a.Name, a.err)
	if errors.Is(a.err, gitsource.ErrNotReady) {
		a.unread = u.kube.Now
	}
	switch reconciler.Pump(pump) {
	case reconciler.PumpIn:
		if a.err == nil {
			a.looked = a.Clone.Main
		}
	case reconciler.PumpApps:
		if a.known == u.git.Head(testBranch) {
			u.oracle.checkBacks(a)
		}
		u.promises.looked(a)
	}
}

// pass begins a pass, and checks the pass if it ends at once.
func (u *universe) pass(a *actor, fetch bool) {
	a.commits = map[string]int{}
	u.beginVisits(a)
	u.ripen()
	u.after(a, a.Begin(u.now(a), fetch))
}

// beginVisits notes the records, users' versions and empty workloads when a process's app passes begin.
func (u *universe) beginVisits(a *actor) {
	a.records, u.spoiled = map[string]int{}, false
	for app, records := range u.oracle.records {
		a.records[app] = len(records)
	}
	a.allOn, a.visits = u.promises.allOn(), u.now(a)
	a.empty = slices.DeleteFunc(u.workloads(), func(w rollout.Workload) bool { return u.kube.Deployments[w].Replicas > 0 })
}

// hadNone reports whether a workload had no replicas when the process's app passes began.
func (a *actor) hadNone(w rollout.Workload) bool { return a != nil && slices.Contains(a.empty, w) }

// after checks a pass if it has ended.
func (u *universe) after(a *actor, ended bool) {
	if !ended {
		return
	}
	u.note("  %s ends: %v", a.Name, a.err)
	switch due := a.NextDue(); {
	case a.err == nil || due.After(a.read):
		a.hasty = 0
	case !due.IsZero():
		if a.hasty++; a.hasty == 3 {
			u.promises.fail(lawBackOff, "%s tries again at once for the third time: %v", a.Name, a.err)
		}
	}
	if a.Clone.Main != a.seen {
		u.oracle.checkBacks(a)
	}
	u.promises.looked(a)
	a.seen = a.Clone.Main
}

// step lets the next effect of a process happen or fail, or kills the process before the effect.
func (u *universe) step(a *actor) {
	if u.chaos.crashes && !u.calm && u.rng.IntN(60) == 0 {
		u.note("CRASH of %s before %s", a.Name, a.next)
		u.crash(a)
		return
	}
	if u.chaos.pumps && !u.calm {
		a.Choose(u.rng.IntN(len(a.threads)))
		if a.next.Verb == "push" && u.rng.IntN(30) > 0 {
			return // pushes are slow, so other threads continue first
		}
	}
	name := a.current.name
	outcome := u.outcome(a.next)
	if outcome.Err != nil {
		u.note("  %s: %s fails: %v (happens all the same: %t)", a.Name, a.next, outcome.Err, outcome.After)
	}
	if outcome.Err != nil && a.next.Verb == "push" {
		defer func() { a.commits = map[string]int{} }() // after a failed push, the process may record the app again
	}
	if ended := a.Resume(outcome); name == "pass" {
		u.after(a, ended)
	} else if ended {
		u.turned(a, name)
	}
}

func (u *universe) crash(a *actor) {
	a.Kill()
	u.restart(a, a.Name)
}

var (
	errDown     = errors.New("Git does not answer")
	errLost     = errors.New("the connection broke")
	errRejected = errors.New("remote rejected: pre-receive hook declined") // a protected branch has the same effect
	errServer   = errors.New("the server answers 500, 429 or 409")
	errTimeout  = errors.New("timeout")
)

// outcome returns a random result of an effect.
func (u *universe) outcome(e Effect) Outcome {
	if u.calm {
		return Outcome{}
	}
	switch e.Verb {
	case "fetch", "read", "push":
		if u.kube.Now.Before(u.gitDown) {
			return Outcome{Err: errDown}
		}
		if e.Verb == "push" && u.kube.Now.Before(u.pushDown) {
			return Outcome{Err: errRejected}
		}
		if !u.chaos.git || u.rng.IntN(12) > 0 {
			return Outcome{}
		}
		if e.Verb != "push" {
			return Outcome{Err: errDown}
		}
		return []Outcome{{Err: errRejected}, {Err: errLost, After: true}, {Err: errLost}}[u.rng.IntN(3)]
	default:
		isDown := u.kube.Now.Before(u.apiDown)
		if !isDown && (!u.chaos.api || u.rng.IntN(12) > 0) {
			return Outcome{}
		}
		if u.apiFault = u.kube.Now; isDown {
			return Outcome{Err: errServer}
		}
		return []Outcome{{Err: errServer}, {Err: errTimeout, After: true}, {Err: errTimeout}}[u.rng.IntN(3)]
	}
}

// act makes one random event happen.
func (u *universe) act() {
	switch n := u.rng.IntN(100); {
	case n < 40:
		for range 1 + u.rng.IntN(10) {
			if !u.kube.Micro() {
				break
			}
		}
	case n >= 70 && n < 76 && u.chaos.pushes:
		u.people()
	case n < 76 && u.isAway():
	case n < 76:
		a := u.procs[u.rng.IntN(len(u.procs))]
		switch {
		case u.chaos.pumps:
			u.turn(a)
		case !a.running:
			u.begin(a)
		}
		for range 1 + u.rng.IntN(6) {
			if a.running {
				u.step(a)
			}
		}
	case n < 86:
		u.advance()
	case n < 89:
		u.judge()
	case n >= 95 && !u.chaos.humans, n >= 92 && u.chaos.sets != nil:
		u.trouble()
	case n >= 97:
		u.trouble()
	default:
		u.people()
	}
}

// judge runs all due events. If no event is due afterwards, judge checks the laws.
func (u *universe) judge() {
	if !u.isAway() && u.rest() {
		u.oracle.quiet()
		u.promises.atRest()
	}
}

func (u *universe) advance() {
	switch n := u.rng.IntN(10); {
	case n < 5:
		if due := u.kube.NextDue(); due.After(u.kube.Now) {
			u.kube.Now = due
			return
		}
		fallthrough
	case n < 9:
		u.kube.Now = u.kube.Now.Add(time.Duration(1+u.rng.IntN(20)) * time.Second)
	default:
		u.kube.Now = u.kube.Now.Add(time.Duration(1+u.rng.IntN(600)) * time.Second)
	}
}

// trouble starts a random fault.
func (u *universe) trouble() {
	if u.chaos.sets != nil && u.rng.IntN(3) > 0 {
		u.setTrouble()
		return
	}
	a := u.procs[u.rng.IntN(len(u.procs))]
	switch n := u.rng.IntN(7); {
	case n < 5 && u.chaos.kinds:
		u.breakKind()
	case n < 5 && u.chaos.owners:
		u.coOwn()
	case n < 5 && u.chaos.spoils:
		u.spoil()
	case n < 5 && u.chaos.freezes:
		u.edit("freeze (toggled)", func(s *source) { s.isFrozen = !s.isFrozen })
		u.played["a freeze"]++
	case n >= 3 && u.chaos.now && u.rng.IntN(2) == 0:
		u.breakGlassNow()
	case n >= 4 && u.chaos.glass:
		u.breakGlass()
	case n == 0 && u.chaos.kills:
		u.kill()
	case n == 1 && u.chaos.scales:
		u.scale()
	case n == 2 && u.chaos.crashes:
		u.note("CRASH of %s", a.Name)
		u.crash(a)
	case n == 3 && u.chaos.git && u.rng.IntN(2) == 0:
		u.pushDown = u.kube.Now.Add(time.Duration(10+u.rng.IntN(300)) * time.Second)
		u.note("GIT refuses pushes until %s", u.pushDown.Format(time.TimeOnly))
	case n == 3 && u.chaos.git:
		u.gitDown = u.kube.Now.Add(time.Duration(10+u.rng.IntN(300)) * time.Second)
		u.note("GIT is down until %s", u.gitDown.Format(time.TimeOnly))
	case n == 4 && u.chaos.stale:
		u.watch(a, !a.View.Stale)
	case n == 5 && u.chaos.clock:
		a.skew += time.Duration(u.rng.IntN(600)-300) * time.Second
		u.note("CLOCK of %s is off by %s", a.Name, a.skew)
	case n == 6 && u.chaos.meddling:
		u.meddle()
	}
}

// breakKind makes the kind of one app's workloads unwatchable, or makes all kinds watchable again.
func (u *universe) breakKind() {
	apps := u.head().apps
	if name := apps[u.rng.IntN(len(apps))].name; u.unread == "" && len(apps) > 1 {
		u.unread = name
	} else {
		u.unread = ""
	}
	u.note("KIND of app %q cannot be watched", u.unread)
	u.played["a kind that cannot be watched"]++
	u.changed("kinds")
}

// halfBlind marks the workloads of an app as unseen if their kind cannot be watched.
func halfBlind(p starting, app string, seen *rollout.Observed) {
	if app == p.u.unread {
		seen.Unseen = "the watch of its kind fails"
	}
}

func (u *universe) watch(a *actor, broken bool) {
	u.note("WATCH of %s broken: %t", a.Name, broken)
	a.View.refresh()
	a.View.Stale, a.View.Unseen = broken, ""
	switch {
	case broken:
		if u.broken++; u.broken%2 == 0 { // in every second case, the process knows that its watches are broken
			a.View.Unseen = "the API server does not answer"
		}
	case a.missed:
		a.missed = false
		u.touch(a)
	}
}

// rest runs all due events. It returns false if events remain due, or if a pass failed.
func (u *universe) rest() bool {
	u.endUser()
	for range 100 {
		for moves := 0; u.kube.Micro(); moves++ {
			if moves > 10_000 {
				return false
			}
		}
		before, failed := [2]int{u.cluster.version, u.moves}, false
		for _, a := range u.procs {
			for a.running {
				u.step(a)
			}
			u.note("PASS of %s", a.Name)
			a.blind = a.View.Unseen != ""
			if !u.calm {
				u.touch(a) // otherwise, apps that retry later would get no pass now
			}
			for u.pass(a, true); a.running; {
				u.step(a)
			}
			failed = failed || a.err != nil || a.seen == "" // a.seen is "" after a crash
		}
		if before == [2]int{u.cluster.version, u.moves} && u.failure == "" && !u.isRipe() {
			return !failed
		}
		if u.failure != "" {
			return true
		}
	}
	return u.chaos.git || u.chaos.api || u.chaos.crashes // with such faults, events may always be due
}

// kill deletes one ready pod, or makes it unready for a while.
func (u *universe) kill() {
	for _, w := range u.workloads() {
		d := u.kube.Deployments[w]
		for _, i := range u.rng.Perm(len(d.Sets)) {
			for _, p := range d.Sets[i].Live() {
				if p.Ready && u.rng.IntN(3) == 0 {
					u.oracle.guard(w).Excused++
					u.promises.replaced(w)
					p.Ready, p.Due = false, u.kube.Now.Add(time.Duration(u.rng.IntN(10))*time.Second)
					p.Terminating = u.rng.IntN(2) == 0
					u.note("KILL %s (terminating %t)", p.Name, p.Terminating)
					u.spoiled = true
					u.kube.OnChange("pod " + p.Name)
					return
				}
			}
		}
	}
}

// spoil makes some or all pods of a stable version unready for good, as an expired certificate does.
func (u *universe) spoil() {
	all := u.workloads()
	w := all[u.rng.IntN(len(all))]
	state := u.oracle.states[u.oracle.appOf(w)]
	stable := state.StableHash(w)
	for _, rs := range u.kube.Deployments[w].Sets {
		if rollout.Hash(rs.Annotations[rollout.AnnotationHash]) != stable {
			continue
		}
		u.note("SPOIL %s of %s", kube.VersionOf(rs.Template), w)
		u.bad[kube.VersionOf(rs.Template)] = true
		all := u.rng.IntN(2) == 0
		for _, p := range rs.Live() {
			if !all && u.rng.IntN(2) == 0 {
				continue
			}
			if p.Ready {
				u.oracle.guard(w).Excused++
				u.promises.replaced(w)
			}
			p.Ready, p.Never = false, true
		}
		u.promises.excuse(w) // users may then get any version that has ready pods
		u.played["a stable version broken"]++
		u.spoiled = true
		u.kube.OnChange("pods of " + rs.Name)
	}
}

func (u *universe) scale() {
	for _, w := range u.workloads() {
		if spec, ok := u.oracle.specOf(w); ok && spec.Replicas == nil && u.rng.IntN(2) == 0 {
			u.scaleTo(w, sizes[u.rng.IntN(len(sizes))])
		}
	}
}

func (u *universe) scaleTo(w rollout.Workload, n int) {
	u.scaled[w] = n
	if d := u.kube.Deployments[w]; d.Replicas != n {
		u.note("SCALE %s to %d", w, n)
		u.played["scaled while "+string(u.oracle.states[u.oracle.appOf(w)].Phase)]++
		u.played["scaled to some"] += min(n, 1)
		u.played["scaled to 0"] += 1 - min(n, 1)
		d.Replicas = n
		d.Generation++
		u.kube.OnChange("replicas")
	}
}

func (u *universe) workloads() []rollout.Workload {
	byRef := func(a, b rollout.Workload) int { return a.Ref().Compare(b.Ref()) }
	return slices.SortedFunc(maps.Keys(u.kube.Deployments), byRef)
}

// BeginTurn starts a turn of one pump, and reports whether the turn has ended. Threads of other pumps may be blocked before an effect.
func (p *Process) BeginTurn(pump reconciler.Pump, now time.Time) (ended bool) {
	if pump == reconciler.PumpApps {
		p.now = p.clock(now)
	}
	clock := p.clock(now)
	return p.start(string(pump), func() error { return p.Turn(context.Background(), pump, clock) })
}

// Stopped returns the names of the threads that are blocked before an effect.
func (p *Process) Stopped() []string {
	return rollout.Mapped(p.threads, func(t *thread) string { return t.name })
}

// Kill ends the process. Neither the effects at which its threads wait nor later effects happen.
func (p *Process) Kill() {
	p.dead = true
	for len(p.threads) > 0 {
		p.Choose(0)
		p.Resume(Outcome{Err: errDead})
	}
}

// Pass runs a whole pass in which all effects happen, and returns the pass's error.
func (p *Process) Pass(now time.Time, fetch bool) error {
	for ended := p.Begin(now, fetch); !ended; {
		ended = p.Resume(Outcome{})
	}
	return p.err
}
