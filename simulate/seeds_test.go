package simulate

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "live only this seed, and print its trace")
	seedsFlag = flag.Int("seeds", 0, "how many seeds to live, shared among the worlds")
	fromFlag  = flag.Uint64("from", 1, "the first seed of each world, with -seeds")
	allFlag   = flag.Bool("all", false, "play the moves, too, that are left out")
	lawFlag   = flag.String("law", "", "judge by this law of the promises only, kept or not")
	onlyFlag  = flag.String("move", "", "play only moves with these names")
	worldFlag = flag.String("world", "", "live only in this world")
)

// seedsOr returns -seeds, or the usual number. With -seeds, rare garbage collections save time, but need up to 1 GB of memory.
func seedsOr(usual int) int {
	if *seedsFlag == 0 {
		return usual
	}
	debug.SetGCPercent(1600)
	return *seedsFlag
}

type world struct {
	name string
	chaos
}

// worlds are combinations of faults and users' actions. To replay a violation: go test ./simulate -run TestSeeds -world NAME -seed N
var worlds = []world{
	{"Calm", chaos{bad: true}},
	{"Kills", chaos{kills: true, bad: true}},
	{"Scales", chaos{scales: true, lag: true}},
	{"Crashes", chaos{crashes: true, bad: true}},
	{"Git", chaos{git: true, crashes: true, bad: true}},
	{"API", chaos{api: true, crashes: true, bad: true}},
	{"Watches", chaos{stale: true, bad: true}},
	{"Clocks", chaos{clock: true, crashes: true, bad: true}},
	{"Rewrites", chaos{rewrites: true, git: true, bad: true}},
	{"Pair", chaos{processes: 2, crashes: true, git: true}},
	{"Eight", chaos{processes: 8, crashes: true}},
	{"Meddling", chaos{meddling: true, crashes: true}},
	{"Experiments", chaos{experiments: true, scales: true, processes: 2, crashes: true, git: true, api: true, bad: true}},
	{"Analyses", chaos{analyses: true, crashes: true, bad: true}},
	{"Decays", chaos{decays: true, crashes: true, git: true}},
	{"PeopleAndDecays", chaos{humans: true, decays: true, analyses: true}},
	{"Pumps", chaos{pumps: true, bad: true}},
	{"SlowGit", chaos{pumps: true, git: true, crashes: true, bad: true, kills: true}},
	{"SlowApps", chaos{pumps: true, api: true, bad: true, stale: true, scales: true}},
	{"TwoWithPumps", chaos{pumps: true, processes: 2, crashes: true, git: true, bad: true}},
	{"People", chaos{humans: true, bad: true}},
	{"PeopleAndFaults", chaos{humans: true, bad: true, git: true, api: true, crashes: true, rewrites: true}},
	{"PeopleAndSizes", chaos{humans: true, scales: true, kills: true}},
	{"PeopleAndPumps", chaos{humans: true, bad: true, pumps: true, git: true}},
	{"PeopleAndAnalyses", chaos{humans: true, analyses: true, git: true}},
	{"PeopleAndSteps", chaos{humans: true, edits: true, bad: true}},
	{"StatefulSets", chaos{sets: (*workloadSource).asSet, bad: true, crashes: true, api: true, git: true}},
	{"CalmSets", chaos{sets: (*workloadSource).asSet}},
	{"DaemonSets", chaos{sets: (*workloadSource).asAgent, bad: true, crashes: true, api: true, git: true}},
	{"CloneSets", chaos{sets: partitioned(byCounts), bad: true, crashes: true, api: true, git: true}},
	{"KruisesDaemonSets", chaos{sets: (*workloadSource).asKruisesAgent, bad: true, crashes: true, api: true, git: true}},
	{"KruisesStatefulSets", chaos{sets: partitioned(byKruisesOrdinals), bad: true, crashes: true, api: true, git: true}},
	{"OwnKinds", chaos{sets: partitioned(byNewCounts, byOldShare), bad: true, crashes: true, api: true, git: true}},
	{"Hooks", chaos{hooks: true, bad: true, crashes: true, api: true, git: true}},
	{"HookPair", chaos{hooks: true, processes: 2, crashes: true, git: true}},
	{"PeopleAndHooks", chaos{humans: true, hooks: true, bad: true}},
	{"PlainHooks", chaos{hooks: true, plain: true, bad: true, crashes: true, api: true, git: true}},
	{"Pushes", chaos{pushes: true, lag: true, late: true}},
	{"PushesAndFaults", chaos{pushes: true, lag: true, late: true, bad: true, git: true, api: true, crashes: true, kills: true}},
	{"Owners", chaos{humans: true, owners: true, bad: true, crashes: true}},
	{"BrokenKinds", chaos{kinds: true, bad: true}},
	{"BrokenStable", chaos{spoils: true}},
	{"BrokenSets", chaos{sets: (*workloadSource).asSet, spoils: true}},
	{"BrokenNodes", chaos{sets: (*workloadSource).asAgent, spoils: true}},
	{"Freezes", chaos{freezes: true, scales: true, bad: true}},
	{"BreakGlass", chaos{glass: true, git: true, api: true, crashes: true, bad: true}},
	{"BreakGlassAndPeople", chaos{glass: true, humans: true, bad: true}},
	{"BreakGlassNow", chaos{glass: true, now: true, git: true, api: true, crashes: true, bad: true}},
	{"WeightsAndGlass", chaos{experiments: true, glass: true, now: true, git: true, api: true, crashes: true, bad: true}},
	{"Restarts", chaos{restarts: true, kills: true, api: true, crashes: true, bad: true}},
	{"Everything", chaos{
		processes: 2, kills: true, scales: true, bad: true, lag: true, crashes: true, git: true, api: true, stale: true,
		clock: true, rewrites: true, meddling: true,
	}},
}

// known has the runs that are known to break a law, with the reason. The tests skip these runs.
var known = map[string]string{}

// again has seeds that once failed, by world. Each comment names the events that led to the failures.
var again = map[string][]uint64{
	"API":               {58, 571},       // a Rollout document and a version in one push; proxies that learn a route too late
	"Calm":              {1028},          // a Service that selected pods just before their deletion
	"Crashes":           {2423, 110641},  // two strategies that moved all users; steps removed while another workload pauses
	"DaemonSets":        {1689, 60480},   // fewer nodes after an edit of steps; an unreadable proposal while Git was down
	"PushesAndFaults":   {6000402},       // one app's record refused, and another app's record accepted
	"Everything":        {5102},          // pods that became available because a user set minReadySeconds by hand
	"Experiments":       {174, 110552},   // an experiment without pods; objects that one process pruned and another process created again
	"Git":               {300324},        // after a restart, the author of the commit that holds an app's first release
	"Hooks":             {300082},        // a rollback to a smaller maxSurge while the controller still created pods
	"Kills":             {110062},        // a killed pod that proxies still have as an endpoint
	"OwnKinds":          {600036},        // pods of a larger step after an edit of the steps
	"Pair":              {395, 522},      // a held workload without pods; a record that partly lost a race
	"Meddling":          {4000425},       // a state branch that a user moved back to the record that the process had read last
	"Owners":            {33, 1000051},   // restarts without a configuration, after an app left the configuration
	"PlainHooks":        {366},           // a content pushed again, whose earlier Job exists but is no longer recorded
	"Rewrites":          {2514, 4110},    // no steps left at a switch
	"TwoWithPumps":      {2045},          // a rollback with an older serial than the advance recorded meanwhile
	"BrokenStable":      {400212},        // broken old pods that block a restart at a smaller step
	"Watches":           {5111},          // a Service that selected stable pods just before their deletion
	"Clocks":            {93110, 110200}, // a release of one of two workloads before a rollback's end; readiness by a late clock
	"KruisesDaemonSets": {617, 4765},     // a node that Kruise does not count; nodes without a pod at the start of a release
	"Pumps":             {92, 98076},     // a pinned Service without another version; pods created while a list of steps waits

	// A pod created after its ReplicaSet was scaled to 0; a first document that never serves; a push while one workload has only new pods, and
	// a Service sends all users of the other workload to new pods.
	"Pushes": {180, 4000432, 8200059},
	// An abort of a release whose Deployment has another name in Git; fewer replicas in Git while Kubernetes removes the old pods; a
	// document that came back with its Deployment; a preview that is ready before the pods of a scale-up from 0; a smaller weight before
	// Kubernetes has seen the step of 100 %; an abort of all workloads by a request on the renamed Deployment.
	"BreakGlassAndPeople": {52954, 52153, 52199, 90128, 90550, 71888},
	// A second user's abort that restarted pods of a release after its rollback; a request that names a future serial; an abort of a
	// recorded step before its apply; a rollback while a switch was being recorded.
	"BreakGlassNow": {66, 7000066, 7002740, 9100328},
	// Steps changed while Kubernetes restores old pods; a verdict about a workload without pods; a return to a version that served before
	// but was pushed later; steps without matched requests, after steps with matched requests.
	"Analyses": {27, 2305, 70109, 93047},
	// A rollback of a workload that briefly had no pods; a release that advances again while the pods with the lowest ordinals are new; a
	// rollback from a step without requests, with another list of steps.
	"CalmSets": {3175, 90055, 150017},
	// A broken pod at a pause while a route has no pod; pods that come while an empty workload becomes stable.
	"CloneSets": {3027, 600442},
	// An old abort of a version that came again; a route that another process had just removed.
	"Eight": {400262, 1000332},
	// Routes of steps added while Kubernetes replaced pods; a push during the hook of a change without a template; recorded Jobs that
	// another process is about to create; a rollback that waits for its record after the app's next pass is due.
	"HookPair": {93053, 110221, 1000153, 1000359, 4000187},
	// The text of a rejection, under a new name; a workload without routes beside a workload with routes; a strategy changed during the
	// analysis after the switch.
	"PeopleAndAnalyses": {60289, 300043, 1000230},
	// Pods of an image set by hand; new steps of a workload that advanced without pods; replicas at a pause. A stable version of a commit
	// with an unreadable configuration, under a new name.
	"People": {380, 150914, 600070, 6000162},
	// Removed paused documents; a lost commit; replicas that wait for a release without an end; a lost commit whose pods never became
	// ready; a restart without a configuration; routes of lost commits; one pod too many, beside a broken pod; no pods for a while after
	// the last step; a restart with mistakes in the old and the new configuration; a removed app whose rollback had just ended; a restart
	// that rendered an app's head before the app's namespace was known; a rollback whose release's commit is gone.
	"PeopleAndFaults": {661, 721, 854, 1455, 1580, 60275, 70044, 110477, 110950, 300033, 400020, 5000308},
	// An app's new name in older commits; more pods than the step; a dynamic canary with all pods set by hand; a last pod set by hand
	// beside a superseded version; pods of a removed step.
	"PeopleAndPumps": {44, 401, 3167, 4077, 600027, 5000170},
	// A retry within a second; a Service of terminating pods after Git emptied the app; two new names, both unreadable; a release after an
	// unrecorded first deployment.
	"PeopleAndSteps": {132544, 132872, 400062, 5000195},
	// Pods set by hand; a retry that another decision replaced while the app was held; too many ready pods; a late pod; a paused document;
	// an app's second-last name; a moved owner; a workload that has pods again, after the app's other workloads had moved.
	"PeopleAndSizes": {135, 87, 210, 272, 487, 2266, 40056, 600015},
	// A rejected content, and then documents of other workloads; a Job of a renamed app that then takes over the old name's record; a
	// document that comes during a deployment with hooks; fewer new pods after an image was set by hand; new documents without another
	// change while a Job runs; a release after a commit without objects.
	"PeopleAndHooks": {101, 600142, 1000012, 1000381, 6000181, 6000151, 6000160},
	// A scale-up before Kubernetes saw 0 replicas; matched users after a restart of gitrollout; a scale-up before the last pods were gone;
	// stable pods that no process saw start; a kill of the only pod while Git refuses to record the promotion.
	"StatefulSets": {592, 40077, 110565, 150405, 600302},
	// A write of a Service that reported an error but succeeded; a rollback decided while the promotion was being recorded; a paused
	// rollback that waits for its record.
	"SlowApps": {861, 300017, 600057},
}

type seedRun struct {
	world int
	seed  uint64
}

func (l seedRun) String() string {
	return fmt.Sprintf("-world %s -seed %d", worlds[l.world].name, l.seed)
}

// play runs one seed: a first deployment, then releases and faults, then a repair. At the end, all apps must be healthy.
func play(seed uint64, c chaos, m mutation, verbose bool) *universe {
	u := newUniverse(seed, c, m, verbose)
	u.start()
	acts := 60 + u.rng.IntN(240)
	if c.decays && !c.humans {
		acts *= 3 // a watch takes longer than a release
	}
	for range acts {
		if u.failure != "" {
			return u
		}
		u.act()
	}
	if seed%3 == 0 && !c.clock {
		u.leaveAlone()
	}
	u.settle()
	return u
}

type outcome struct {
	failure       string
	writes, stale int
	played        map[string]int
}

// outcomes holds the results of runs, so that several tests can share one run.
var outcomes sync.Map

func (l seedRun) outcome() outcome {
	if known, is := outcomes.Load(l); is {
		return known.(outcome)
	}
	u := play(l.seed, worlds[l.world].chaos, mutation{}, false)
	o := outcome{u.failure, u.oracle.writes, u.oracle.staleWrites, u.played}
	outcomes.Store(l, o)
	return o
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // runs are short and leave little garbage
	os.Exit(m.Run())
}

// TestSeeds runs many random worlds. The type oracle and the type promises check each effect. The method settle checks the end.
func TestSeeds(t *testing.T) {
	isChosen := func(w world) bool { return *worldFlag == "" || strings.EqualFold(w.name, *worldFlag) }
	if !slices.ContainsFunc(worlds, isChosen) {
		t.Fatalf("there is no world %s", *worldFlag)
	}
	if *seedFlag != 0 {
		for _, w := range worlds {
			if !isChosen(w) {
				continue
			}
			u := play(*seedFlag, w.chaos, mutation{}, true)
			t.Log(w.name + "\n" + strings.Join(u.trace, "\n"))
			if u.failure != "" {
				t.Error(u.failure)
			}
		}
		return
	}
	seeds := 520
	if testing.Short() {
		seeds = 130
	}
	if *seedsFlag > 0 {
		seeds = *seedsFlag
	}
	var all []seedRun
	for i := 0; len(all) < seeds; i++ {
		w := i % len(worlds)
		l := seedRun{world: w, seed: uint64(i/len(worlds)) + *fromFlag}
		if why := known[l.String()]; why != "" {
			t.Logf("left out: %s: %s", l, why)
		} else if isChosen(worlds[w]) {
			all = append(all, l)
		}
	}
	for w := range worlds {
		for i, seed := range again[worlds[w].name] {
			if isChosen(worlds[w]) && (i == 0 || !testing.Short()) {
				all = append(all, seedRun{w, seed})
			}
		}
	}
	runAll(t, all)
}

func runAll(t *testing.T, all []seedRun) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var failed []seedRun
	done, writes, stale := 0, 0, 0
	work := make(chan seedRun)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for l := range work {
				o := l.outcome()
				mu.Lock()
				done, writes, stale = done+1, writes+o.writes, stale+o.stale
				if o.failure != "" {
					failed = append(failed, l)
					fmt.Fprintf(os.Stderr, "simulate: %s: %s\n", l, o.failure)
				}
				mu.Unlock()
			}
		})
	}
	last := time.Now()
	for _, l := range all {
		work <- l
		if time.Since(last) > 2*time.Second {
			last = time.Now()
			mu.Lock()
			fmt.Fprintf(os.Stderr, "simulate: %d of %d seeds, %.0f a second, %d failed\n",
				done, len(all), float64(done)/time.Since(began).Seconds(), len(failed))
			mu.Unlock()
		}
	}
	close(work)
	wg.Wait()
	t.Logf("%d seeds in %d worlds, %.0f a second, %d writes to clusters checked (%d of a process that had lost a race meanwhile), "+
		"%d seeds failed", len(all), len(worlds), float64(len(all))/time.Since(began).Seconds(), writes, stale, len(failed))
	slices.SortFunc(failed, func(a, b seedRun) int { return int(a.seed) - int(b.seed) })
	for i, l := range failed {
		if i == 5 {
			t.Errorf("and %d more", len(failed)-i)
			break
		}
		u := play(l.seed, worlds[l.world].chaos, mutation{}, true)
		t.Errorf("go test ./simulate -run TestSeeds %s: %s\n%s", l, u.failure, strings.Join(u.trace[max(0, len(u.trace)-40):], "\n"))
	}
}

// TestReplay runs some seeds twice, and checks that both runs have the same trace.
func TestReplay(t *testing.T) {
	for i, w := range worlds {
		if testing.Short() && i%4 > 0 {
			continue
		}
		seed := uint64(1000 + i)
		first, again := play(seed, w.chaos, mutation{}, true), play(seed, w.chaos, mutation{}, true)
		if a, b := strings.Join(first.trace, "\n"), strings.Join(again.trace, "\n"); a != b {
			t.Errorf("%s: two runs of one seed differ: %d and %d lines", seedRun{i, seed}, len(first.trace), len(again.trace))
		}
	}
}

// TestWorldsHaveWhatHurts checks that each action of users and scalers happens in at least one of 600 runs.
func TestWorldsHaveWhatHurts(t *testing.T) {
	if testing.Short() {
		t.Skip("fewer than 600 runs lack some events")
	}
	wanted := []string{
		"a slip made", "a slip mended", "a document removed", "a document put back", "a document put back with a version",
		"a proposal replaced", "another controller at first", "push while Promoting", "push while Aborting",
		"scaled to 0", "scaled to some", "scaled while Healthy", "scaled while Progressing", "scaled while Paused",
		"scaled while Promoting", "scaled while Aborting",
	}
	for _, m := range slices.Concat(moves, rareMoves, editMoves) {
		wanted = append(wanted, m.name)
	}
	var people []int
	for i, w := range worlds {
		if w.humans {
			people = append(people, i)
		}
	}
	played := map[string]int{}
	for i := range 600 {
		l := seedRun{people[i%len(people)], uint64(i/len(people)) + 1}
		for name, n := range l.outcome().played {
			played[name] += n
		}
	}
	t.Log(played)
	for _, name := range wanted {
		if played[name] == 0 {
			t.Errorf("%s: not once in 600 runs", name)
		}
	}
}
