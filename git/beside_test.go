package git_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestBeside checks that two Repos with one mirror (see Beside) share fetched and pushed commits. While the second
// Repo's request for an older commit hangs, the first Repo must be able to fetch, read and push.
func TestBeside(t *testing.T) {
	repo := gittest.New(t)
	older := repo.CommitFiles("first", map[string]string{"a": "1\n"})
	server := repo.HTTP(gittest.HTTPOptions{})
	newest := repo.CommitFiles("second", map[string]string{"a": "2\n"})
	first := open(t, git.Options{URL: server.URL, Branch: "main", Cluster: "test"})
	fetch(t, first)
	second := first.Beside()
	before := first.Stats()
	s, held := second.Held(newest)
	if !held {
		t.Fatal("the second does not have the first's fetched commit")
	}
	if content, err := s.ReadFile("a"); err != nil || string(content) != "2\n" {
		t.Errorf("the file is %q, error %v", content, err)
	}
	fetch(t, second)
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
	pushed := push(t, first, stateUpdate("", "x", "1"))[0]
	snapshot(t, first, older) // must not wait for the second Repo's request
	if found := fetch(t, first); found.Main != newest {
		t.Errorf("fetched %+v", found)
	}
	asked()
	if err := <-done; err == nil || strings.Contains(err.Error(), "not found") {
		t.Errorf("the fetch that hung ended with %v", err)
	}
	if _, held := second.Held(pushed); !held {
		t.Error("the first's push is missing in the second")
	}
}
