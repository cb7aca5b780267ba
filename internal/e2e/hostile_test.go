package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// hostileFor is the duration of TestHostileHour; 0 selects the short form.
var hostileFor = flag.Duration("hostile", 0,
	"how long TestHostileHour pushes bombs, one every 20s, and checks times; 0: six bombs, and no check of times")

const (
	neighbours  = 9
	mostMemory  = 256 // MiB of memory of the reconciler's process
	mostSlower  = 1.2 // limit of each neighbour's median time, relative to its median without bombs
	abortWithin = time.Second
	calmRounds  = 4 // rounds without bombs, in the long form
)

// shortForm names one bomb for each limit, in this order: memory, time, conditions, garbage collection, reading, and comparisons.
var shortForm = []string{
	"a text that doubles 40 times", "a template that goes on for 8 hours", "a condition that never ends", "a large file in 60 overlays",
	"a list of 990,000 numbers", "two trillion requests, and another",
}

// TestHostileHour releases nine apps repeatedly, with occasional aborts, and pushes bombs (inputs that exhaust memory or time) to a
// tenth app. A bomb must not restart a release of the nine apps, or slow it down by more than a fifth. gitrollout must apply an
// abort within a second, and must not exit or exceed mostMemory. Without -hostile, the test takes a minute and does not check times.
func TestHostileHour(t *testing.T) {
	long := *hostileFor > 0
	h := newHostile(t, long)
	rounds := 1
	if long {
		rounds = calmRounds
	}
	var calm, stormy laps
	for range rounds {
		calm.add(h.round(-1))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.bomb(long)
	}()
	for i, over := 0, false; !over; i++ {
		aborted := -1
		if i%3 == 0 {
			aborted = i / 3 % neighbours
		}
		stormy.add(h.round(aborted))
		select {
		case <-ended:
			over = true
		default:
		}
	}
	h.judge(t, calm, stormy, long)
}

// judge logs the results of the bombs, and checks the releases, the aborts and the process's memory.
func (h *hostile) judge(t *testing.T, calm, stormy laps, long bool) {
	t.Logf("%d bombs, %d of them with a result; %d rounds of releases without bombs and %d with; memory up to %d MiB; aborts applied after %v",
		h.pushed, len(h.became), len(calm[0]), len(stormy[0]), h.memory(), h.aborts)
	t.Logf("its memory: %s", strings.Join(h.memories, "; "))
	for name, said := range h.became {
		t.Logf("%s: %.160s", name, said)
	}
	for i, app := range h.apps {
		before, now := median(calm[i]), median(stormy[i])
		t.Logf("%s: %.1f s without bombs, %.1f s with them: %.2f", app, before.Seconds(), now.Seconds(), ratio(now, before))
		if long && ratio(now, before) > mostSlower {
			t.Errorf("%s is slower by %.2f, more than %.1f", app, ratio(now, before), mostSlower)
		}
		if got := h.patches.versions(app); !slices.Equal(got, h.expected[app]) {
			t.Errorf("%s had the versions %v, want %v", app, got, h.expected[app])
		}
	}
	for _, took := range h.aborts {
		if long && took > abortWithin {
			t.Errorf("an abort was applied after %s, want %s", took, abortWithin)
		}
	}
	if len(h.aborts) == 0 {
		t.Error("nothing was aborted")
	}
	want := len(shortForm)
	if long {
		want = min(h.pushed, len(h.all)) / 2 // the next push replaces a bomb that is still being rendered
	}
	if len(h.became) < want {
		t.Errorf("%d of %d bombs had an end, want at least %d: were they seen?", len(h.became), h.pushed, want)
	}
	if got := h.memory(); got > mostMemory {
		t.Errorf("the process has had %d MiB, more than %d", got, mostMemory)
	}
	if err := h.process.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// laps are the durations of each app's releases.
type laps [neighbours][]time.Duration

// add adds the durations of a round; 0 stands for an aborted release.
func (l *laps) add(round [neighbours]time.Duration) {
	for i, took := range round {
		if took > 0 {
			l[i] = append(l[i], took)
		}
	}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return math.MaxInt64 // never released
	}
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// hostile is a fleet with a tenth app, to which the test pushes bombs.
type hostile struct {
	*fleet
	mu       sync.Mutex          // one push at a time
	version  int                 // version of the last release
	expected map[string][]string // the versions that each app should have had, in order
	aborts   []time.Duration
	pushed   int
	memories []string          // the peak memory after each bomb
	became   map[string]string // each bomb's result: the held app's message, the reason of the rollback, or "serves"
	all      map[string]attacks.Bomb
}

func newHostile(t *testing.T, long bool) *hostile {
	t.Helper()
	more := "- {path: evil/app, name: evil, namespace: NS, substitute: {x: " + strings.Repeat("x", 20) + "}}\n"
	if !long {
		more += "limits: {renderTime: 3s}\n"
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/requests" {
			fmt.Fprint(w, []string{"[0, 1000000000000]", "[1000000000000, 1000000000000]"}[len(r.URL.Query().Get("of"))%2])
			return
		}
		fmt.Fprint(w, `{"a": `+strings.Repeat("[", 40)+`1`+strings.Repeat("]", 40)+`}`)
	}))
	t.Cleanup(server.Close)
	h := &hostile{version: 1, expected: map[string][]string{}, became: map[string]string{}, all: attacks.Bombs()}
	maps.Copy(h.all, attacks.Judged(server.URL))
	h.all["a file of 64 MiB"] = attacks.Bomb{Files: map[string]string{"large.txt": strings.Repeat("x", 64<<20),
		"kustomization.yaml": "configMapGenerator: [{name: c, files: [large.txt]}]\n"}}
	h.fleet = newFleet(t, testcluster.Shared(t), neighbours, more, "--analysis-allow-cidr", "127.0.0.0/8")
	for _, app := range h.apps {
		h.expected[app] = []string{"v1"}
	}
	h.push(attacks.Quiet())
	h.until("the tenth app is healthy", func() bool { return h.state("evil").Phase == rollout.Healthy })
	return h
}

// push replaces the files of the tenth app; file names are as in attacks.Bomb.
func (h *hostile) push(files map[string]string) {
	below := map[string]string{}
	for name, content := range (attacks.Bomb{Files: files}).Tree() {
		below[path.Join("evil", name)] = content
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repo.Remove("evil").Write(below).Commit("a bomb")
}

// bomb pushes one bomb after another, and records each result. The short form waits for each result.
func (h *hostile) bomb(long bool) {
	names, every := shortForm, 7*time.Second
	if long {
		names, every = slices.Sorted(maps.Keys(h.all)), 20*time.Second
	}
	for began := time.Now(); ; h.pushed++ {
		if long && time.Since(began) > *hostileFor || !long && h.pushed == len(names) {
			return
		}
		name := names[h.pushed%len(names)]
		before, broken := h.state("evil"), h.broken()
		h.push(h.all[name].Files)
		isNext := func(pushed time.Duration) bool {
			return pushed >= every && (long || h.became[name] != "") || pushed >= every+timeout
		}
		for pushed := time.Now(); !isNext(time.Since(pushed)); time.Sleep(glance) {
			switch s := h.state("evil"); {
			case s.Held != nil && (h.broken() > broken || before.Held == nil || s.Held.Message != before.Held.Message):
				h.became[name] = s.Held.Message
			case len(s.Rejected) > 0 && (len(before.Rejected) == 0 || s.Rejected[0].Hash != before.Rejected[0].Hash):
				h.became[name] = s.Rejected[0].Reason
			case s.Stable.Commit != before.Stable.Commit:
				h.became[name] = "serves"
			}
		}
		h.memories = append(h.memories, fmt.Sprintf("%s: %d MiB", name, h.memory()))
	}
}

// broken returns how many render workers gitrollout has killed.
func (h *hostile) broken() int {
	return strings.Count(h.log.String(), "a render process failed")
}

// round releases the next version of the nine apps. At the first pause, it aborts the release of the app with the given index; a negative
// index aborts no release.
func (h *hostile) round(aborted int) (took [neighbours]time.Duration) {
	h.version++
	version, before := fmt.Sprintf("v%d", h.version), tagOf(h.patches.get(h.apps[max(aborted, 0)]))
	h.mu.Lock()
	h.write(version, h.apps)
	h.repo.Commit(version)
	h.mu.Unlock()
	began := time.Now()
	var all sync.WaitGroup
	for i, app := range h.apps {
		h.expected[app] = append(h.expected[app], version)
		if i != aborted {
			all.Go(func() { took[i] = h.patches.awaitNew([]string{app}, version).Sub(began) })
		}
	}
	if aborted >= 0 {
		h.expected[h.apps[aborted]] = append(h.expected[h.apps[aborted]], before)
		all.Go(func() { h.abort(h.apps[aborted], version, before) })
	}
	all.Wait()
	h.until("all is recorded", func() bool {
		for _, app := range h.apps {
			if s := h.state(app); s.Release != nil || s.Phase != rollout.Healthy && s.Phase != rollout.Degraded {
				return false
			}
		}
		return true
	})
	return took
}

// abort waits for an app's first pause, pushes an abort, and records the time until the app's Deployment is rolled back.
func (h *hostile) abort(app, version, before string) {
	h.until(app+" pauses", func() bool {
		s := h.state(app)
		return s.Phase == rollout.Paused && tagOf(h.patches.get(app)) == version
	})
	hash := h.state(app).Release.Hash
	h.mu.Lock()
	h.repo.Write(map[string]string{rollout.PromotionPath("test", app): fmt.Sprintf(
		"apiVersion: %s\nkind: Promotion\nrelease: %s\ndecision: abort\n", rollout.APIVersion, hash)})
	h.repo.Commit("abort " + app)
	h.mu.Unlock()
	began := time.Now()
	back := h.patches.await([]string{app}, func(d *appsv1.Deployment) bool { return tagOf(d) == before })
	h.aborts = append(h.aborts, back.Sub(began))
}

// until waits until ok returns true, for at most benchBound.
func (h *hostile) until(what string, ok func() bool) {
	for deadline := time.Now().Add(benchBound); !ok(); time.Sleep(glance) {
		if time.Now().After(deadline) {
			h.b.Errorf("not within %s: %s", benchBound, what)
			return
		}
	}
}

// memory returns the reconciler process's peak memory in MiB, without its render workers.
func (h *hostile) memory() int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.process.Process.Pid))
	if err != nil {
		h.b.Error(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(data)
	if found == nil {
		h.b.Errorf("its memory is not in %s", data)
		return math.MaxInt
	}
	kilobytes, _ := strconv.Atoi(string(found[1]))
	return kilobytes >> 10
}
