package git_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBeside checks that two users of a mirror share fetched and pushed commits. Neither waits while the other's
// push, or request for an older commit, hangs.
func TestBeside(t *testing.T) {
	repo := gittest.New(t)
	older := repo.CommitFiles("first", map[string]string{"a": "1\n"})
	server := repo.HTTP(gittest.HTTPOptions{})
	newest := repo.CommitFiles("second", map[string]string{"a": "2\n"})
	first := open(t, server.URL)
	if _, err := first.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := first.Beside()
	before := first.Stats()
	if s, held := second.Held(newest); !held {
		t.Error("the second does not have the first's fetched commit")
	} else if content, err := s.ReadFile("a"); err != nil || string(content) != "2\n" {
		t.Errorf("the file is %q, error %v", content, err)
	}
	if _, err := second.Fetch(t.Context()); err != nil {
		t.Error(err)
	}
	if now := first.Stats(); now.Fetches != before.Fetches {
		t.Errorf("the second fetched commits that the first has: %+v, then %+v", before, now)
	}

	hangs, asked := context.WithCancel(t.Context())
	defer asked()
	sent := len(server.Requests())
	server.Fault(gittest.Faults{Delay: time.Hour})
	done := make(chan error, 1)
	go func() {
		_, err := second.Snapshot(hangs, older)
		done <- err
	}()
	for deadline := time.Now().Add(5 * time.Minute); len(server.Requests()) == sent; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second asks nothing")
		}
	}
	server.Fault(gittest.Faults{})
	heads, err := first.Push(t.Context(), []rollout.Update{stateUpdate("", "x", "1")})
	if err != nil {
		t.Error(err)
	}
	if _, err := first.Snapshot(t.Context(), older); err != nil {
		t.Errorf("the first waits for the second: %v", err)
	}
	if found, err := first.Fetch(t.Context()); err != nil || found.Main != newest {
		t.Errorf("fetched %+v, error %v", found, err)
	}
	asked()
	if err := <-done; err == nil || strings.Contains(err.Error(), "not found") {
		t.Errorf("the fetch that hung ended with %v", err)
	}
	for branch, pushed := range heads {
		if _, held := second.Held(pushed); !held {
			t.Errorf("the first's push to %s is missing in the second", branch)
		}
	}
}
