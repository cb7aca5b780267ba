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

type world struct {
	name string
	chaos
}

// worlds are the kinds of trouble. What replays a violation is: go test ./simulate -run TestSeeds -world NAME -seed N
// (its world and its seed).
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
	{"StatefulSets", chaos{sets: true, bad: true, crashes: true, api: true, git: true}},
	{"CalmSets", chaos{sets: true}},
	{"DaemonSets", chaos{sets: true, nodes: true, bad: true, crashes: true, api: true, git: true}},
	{"CloneSets", chaos{sets: true, clones: true, bad: true, crashes: true, api: true, git: true}},
	{"KruisesDaemonSets", chaos{sets: true, agents: true, bad: true, crashes: true, api: true, git: true}},
	{"KruisesStatefulSets", chaos{sets: true, ordered: true, bad: true, crashes: true, api: true, git: true}},
	{"OwnKinds", chaos{sets: true, own: true, bad: true, crashes: true, api: true, git: true}},
	{"Hooks", chaos{hooks: true, bad: true, crashes: true, api: true, git: true}},
	{"HookPair", chaos{hooks: true, processes: 2, crashes: true, git: true}},
	{"PlainHooks", chaos{hooks: true, plain: true, bad: true, crashes: true, api: true, git: true}},
	{"Pushes", chaos{pushes: true, lag: true, late: true}},
	{"Everything", chaos{processes: 2, kills: true, scales: true, bad: true, lag: true, crashes: true, git: true, api: true, stale: true, clock: true, rewrites: true, meddling: true}},
}

// known are lives that break a promise today, and how. They are not lived with the others.
var known = map[string]string{}

// again are lives that showed what is mended since, beyond the seeds that are lived by default.
var again = map[string][]uint64{
	"API":               {58, 571},                                                 // a document that came with a version; proxies were given less time than they take
	"Analyses":          {27, 2305, 70109, 93047},                                  // steps that change while Kubernetes brings old pods back; a verdict of what has no pods, after all; back to what served, though it was pushed later; steps that match nobody, after one that did
	"Calm":              {1028},                                                    // a Service selected pods that were about to go
	"CalmSets":          {3175, 90055, 150017},                                     // back from what had no pods for a moment; forward again while the lowest pods are new; back from a step without requests, by another list
	"Clocks":            {93110, 110200},                                           // of two workloads one was on what had overtaken a way back; pods that had served by a clock that was late
	"CloneSets":         {3027},                                                    // a pod that is broken at a pause, where a route has none
	"Crashes":           {2423, 110641},                                            // users of two strategies who had all arrived; a workload whose steps are taken away beside a gate
	"DaemonSets":        {1689, 60480},                                             // fewer nodes asked for by other steps; a proposal that could not be read while Git was away
	"Everything":        {5102},                                                    // pods that are available by a hand's minReadySeconds
	"Experiments":       {174, 110552},                                             // an experiment of what has no pods; one of two makes what the other one has pruned
	"HookPair":          {93053, 110221},                                           // routes of steps that came while Kubernetes replaced pods; a push while a hook runs after what changes no template
	"Kills":             {110062},                                                  // what proxies remembered of a pod that the world had killed
	"KruisesDaemonSets": {617, 4765},                                               // a node that Kruise does not count; nodes without a pod when a release begins
	"Pair":              {395, 522},                                                // a workload without pods that is held; a record that has lost the race in part
	"People":            {380, 150914},                                             // pods of an image that was set by hand; other steps, of what has gone along without pods
	"PeopleAndAnalyses": {60289},                                                   // words of a rejection, under a new name
	"PeopleAndFaults":   {661, 721, 854, 1455, 1580, 60275, 70044, 110477, 110950}, // paused documents that are gone; a lost commit; replicas behind what never ends; a lost commit whose pods never served; a restart without a configuration; routes of lost commits; one pod too many, of which one is broken; no pods for a while, behind the last step; a restart with slips in the configuration of now and of then
	"PeopleAndPumps":    {44, 401, 3167, 4077},                                     // an app by its new name in older commits; more pods than a step asks for; all of a dynamic canary's, by a hand
	"PeopleAndSteps":    {132544, 132872},                                          // a retry within a second; a Service of pods that go, of a list that was emptied
	"PeopleAndSizes":    {135, 87, 210, 272, 487, 2266, 40056},                     // pods by hand; a retry replaced while held; too many ready pods; a late arrival; paused; the name before the last; a moved owner
	"PlainHooks":        {366},                                                     // a content that was back when its Job, which could not be deleted, was not on record any more
	"Pumps":             {92, 98076},                                               // a Service that is pinned when there is nothing to move any more; pods that come while a list of steps waits
	"Pushes":            {180},                                                     // a pod that a ReplicaSet got after it was scaled down to 0
	"Rewrites":          {2514, 4110},                                              // no steps any more at a switch
	"StatefulSets":      {592, 40077, 110565, 150405},                              // up again before Kubernetes had seen that there were none; requests that match, and a new process; up again before the last pods had gone; stable pods that nobody has seen come
	"SlowApps":          {861},                                                     // a Service whose write was made after all
	"TwoWithPumps":      {2045},                                                    // a retreat of an older serial than the advance that was recorded meanwhile
	"Watches":           {5111},                                                    // a Service of stable pods that the controller was about to take
}

// life is one seed in one world.
type life struct {
	world int
	seed  uint64
}

func (l life) String() string { return fmt.Sprintf("-world %s -seed %d", worlds[l.world].name, l.seed) }

// live lives one seed: a first deployment, then releases and trouble, then
// everything that was wrong is put right and it must end well.
func live(seed uint64, c chaos, m mutation, verbose bool) *universe {
	u := newUniverse(seed, c, m, verbose)
	u.start()
	for range 60 + u.rng.IntN(240) {
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

// outcome is what is asked of a life that is over.
type outcome struct {
	failure       string
	writes, stale int
	played        map[string]int
}

// outcomes are of the lives that several tests ask about, which are lived once.
var outcomes sync.Map

func (l life) outcome() outcome {
	if known, is := outcomes.Load(l); is {
		return known.(outcome)
	}
	u := live(l.seed, worlds[l.world].chaos, mutation{}, false)
	o := outcome{u.failure, u.oracle.writes, u.oracle.staleWrites, u.played}
	outcomes.Store(l, o)
	return o
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a life is short and leaves little behind
	os.Exit(m.Run())
}

// TestSeeds lives many random worlds. What must hold is in oracle_test.go, how
// it must end in settle.
func TestSeeds(t *testing.T) {
	chosen := func(i int) bool { return *worldFlag == "" || strings.EqualFold(worlds[i].name, *worldFlag) }
	if !slices.ContainsFunc(worlds, func(w world) bool { return *worldFlag == "" || strings.EqualFold(w.name, *worldFlag) }) {
		t.Fatalf("there is no world %s", *worldFlag)
	}
	if *seedFlag != 0 {
		for i, w := range worlds {
			if !chosen(i) {
				continue
			}
			u := live(*seedFlag, w.chaos, mutation{}, true)
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
	var all []life
	for i := 0; len(all) < seeds; i++ {
		w := i % len(worlds)
		l := life{world: w, seed: uint64(i/len(worlds)) + *fromFlag}
		if why := known[l.String()]; why != "" {
			t.Logf("left out: %s: %s", l, why)
		} else if chosen(w) {
			all = append(all, l)
		}
	}
	for w := range worlds {
		for i, seed := range again[worlds[w].name] {
			if chosen(w) && (i == 0 || !testing.Short()) {
				all = append(all, life{w, seed})
			}
		}
	}
	liveAll(t, all)
}

func liveAll(t *testing.T, all []life) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var failed []life
	done, writes, stale := 0, 0, 0
	work := make(chan life)
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
			fmt.Fprintf(os.Stderr, "simulate: %d of %d seeds, %.0f a second, %d failed\n", done, len(all), float64(done)/time.Since(began).Seconds(), len(failed))
			mu.Unlock()
		}
	}
	close(work)
	wg.Wait()
	t.Logf("%d seeds in %d worlds, %.0f a second, %d writes to clusters checked (%d of a process that had lost a race meanwhile), %d seeds failed",
		len(all), len(worlds), float64(len(all))/time.Since(began).Seconds(), writes, stale, len(failed))
	slices.SortFunc(failed, func(a, b life) int { return int(a.seed) - int(b.seed) })
	for i, l := range failed {
		if i == 5 {
			t.Errorf("and %d more", len(failed)-i)
			break
		}
		u := live(l.seed, worlds[l.world].chaos, mutation{}, true)
		t.Errorf("go test ./simulate -run TestSeeds %s: %s\n%s", l, u.failure, strings.Join(u.trace[max(0, len(u.trace)-40):], "\n"))
	}
}

// TestReplay lives a few seeds twice: the same happens, to the last effect.
func TestReplay(t *testing.T) {
	for i, w := range worlds {
		if testing.Short() && i%4 > 0 {
			continue
		}
		seed := uint64(1000 + i)
		first, again := live(seed, w.chaos, mutation{}, true), live(seed, w.chaos, mutation{}, true)
		if a, b := strings.Join(first.trace, "\n"), strings.Join(again.trace, "\n"); a != b {
			t.Errorf("%s: two lives of one seed differ: %d and %d lines", life{i, seed}, len(first.trace), len(again.trace))
		}
	}
}
