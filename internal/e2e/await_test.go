package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// glance is the interval between two polls of a condition.
const glance = 100 * time.Millisecond

const timeout = 5 * time.Minute

// eventually waits until a condition holds. At the timeout it fails the test and prints the result of instead().
func eventually(t testing.TB, what string, holds func() bool, instead func() any) {
	t.Helper()
	within(t, timeout, what, holds, instead)
}

// within waits until a condition holds. After the given timeout it fails the test and prints the result of instead().
func within(t testing.TB, limit time.Duration, what string, holds func() bool, instead func() any) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(glance) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s; instead: %+v", limit, what, instead())
		}
	}
}

// awaitEqual waits until get() returns the wanted value.
func awaitEqual[T any](t testing.TB, what string, want T, get func() T) {
	t.Helper()
	var got T
	eventually(t, fmt.Sprintf("%s: %v", what, want), func() bool {
		got = get()
		return compare.Equal(want, got)
	}, func() any { return got })
}

// state reads the app's state from the state branch. It runs git only after the branch has moved: with one process for
// each poll, eight parallel tests would occupy a whole core.
func (w *world) state() rollout.State {
	w.t.Helper()
	head, err := os.ReadFile(filepath.Join(w.repo.Bare, "refs", "heads", filepath.FromSlash(w.stateBranch())))
	if err != nil {
		return rollout.State{} // no branch yet
	}
	w.seen.Lock()
	defer w.seen.Unlock()
	if id := strings.TrimSpace(string(head)); id != w.seen.head {
		w.seen.state, w.seen.head = stateOf(w.t, w.repo, id, w.app), id
	}
	return w.seen.state
}

// stateOf reads an app's state from a commit or a branch. The state is empty if the file does not exist.
func stateOf(t testing.TB, repo *gittest.Repo, at, app string) rollout.State {
	t.Helper()
	file := rollout.StatePath(app)
	show := exec.Command("git", "-C", repo.Bare, "cat-file", "blob", at+":"+file)
	show.Env = gittest.Env()
	data, err := show.Output()
	if err != nil {
		return rollout.State{} // no such file
	}
	s, err := rollout.ParseState(file, data)
	if err != nil {
		t.Errorf("state on the branch: %v", err)
		return rollout.State{}
	}
	return *s
}

// shown formats a state for a failure message.
func shown(s rollout.State) string {
	return fmt.Sprintf("the state is %s step %+v reason %q held %+v", s.Phase, s.Progress, s.Reason, s.Held)
}

// until waits until a condition holds. At the timeout it fails the test and prints the app's state.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	eventually(w.t, what, holds, func() any { return shown(w.state()) })
}

// await waits until the state satisfies a condition.
func (w *world) await(what string, ok func(rollout.State) bool) (s rollout.State) {
	w.t.Helper()
	w.until(what, func() bool { s = w.state(); return ok(s) })
	return s
}

func (w *world) awaitHealthy(commit string) rollout.State {
	w.t.Helper()
	return w.await("healthy at "+rollout.ShortID(commit), func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable != nil && s.Stable.Commit == commit
	})
}

// awaitPause waits until the release pauses at a step.
func (w *world) awaitPause(step int) rollout.State {
	w.t.Helper()
	return w.await(fmt.Sprintf("paused at step %d", step), func(s rollout.State) bool {
		return s.Phase == rollout.Paused && len(s.Progress) == 1 && s.Progress[0].Step == step
	})
}

// awaitGet waits until the output of gitrollout get contains all given texts.
func (w *world) awaitGet(texts ...string) {
	w.t.Helper()
	var out string
	eventually(w.t, fmt.Sprintf("get shows %q", texts), func() bool {
		out, _ = w.cli("get", w.app)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(oneLine(out), text) })
	}, func() any { return out })
}

// wantStable checks that s has the same stable version as an earlier state, and the given number of rejected versions.
func (w *world) wantStable(earlier, s rollout.State, rejected int) {
	w.t.Helper()
	if s.Stable.Hash != earlier.Stable.Hash || len(s.Rejected) != rejected {
		w.t.Errorf("stable is %s with rejected %v, want %s with %d", s.Stable.Hash, s.Rejected, earlier.Stable.Hash, rejected)
	}
}
