package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

const megabyte = 1 << 20

func open(t *testing.T, url string) *git.Repo {
	t.Helper()
	r, err := git.Open(t.Context(), git.Options{URL: url, Branch: "main", Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readable looks whether files of the newest commit can be read, or are too large.
func readable(t *testing.T, r *git.Repo, want map[string]bool) {
	t.Helper()
	heads, err := r.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, held := r.Held(heads.Main)
	if !held {
		t.Fatal("the newest commit is not here")
	}
	for file, isKept := range want {
		content, err := s.ReadFile(file)
		if isKept && (err != nil || len(content) == 0) || !isKept && !errors.Is(err, rollout.ErrTooLarge) {
			t.Errorf("%s: %d bytes, error %v, want it kept: %t", file, len(content), err, isKept)
		}
	}
}

// noise does not compress, so that Git sends what is different in the next version of it.
func noise(size int) []byte {
	data := make([]byte, size)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{}), data)
	return data
}

// TestLargeFilesAreNotKept: a file of more than 16 MiB is known by its id alone, whether Git sends it whole or as what is
// different from another one, and everything else goes on, also in the commits after it and once the store is renewed.
// A server that can leave it out is asked to.
func TestLargeFilesAreNotKept(t *testing.T) {
	for _, filter := range []string{"false", "true"} {
		t.Run("filter "+filter, func(t *testing.T) { largeFilesAreNotKept(t, filter) })
	}
}

func largeFilesAreNotKept(t *testing.T, filter string) {
	repo := gittest.New(t)
	repo.InBare("config", "uploadpack.allowFilter", filter)
	old := noise(17 * megabyte)
	repo.CommitFiles("first", map[string]string{"a.yaml": "a: 1\n", "docs/limit.bin": strings.Repeat("\x00", 16*megabyte),
		"docs/zeros.bin": strings.Repeat("\x00", 16*megabyte+1), "docs/video.bin": string(old)})
	changed := bytes.Clone(old)
	changed[8*megabyte] ^= 1
	repo.CommitFiles("second", map[string]string{"docs/video2.bin": string(changed)})
	repo.InBare("repack", "-adfq", "--window=10")
	want := map[string]bool{"a.yaml": true, "docs/limit.bin": true, "docs/zeros.bin": false, "docs/video.bin": false, "docs/video2.bin": false}
	r := open(t, repo.Bare)
	readable(t, r, want)
	if used := r.Stats().Bytes; used > 20*megabyte {
		t.Errorf("%d MiB are kept, want 16", used/megabyte)
	}
	if came := r.Stats().Received; (came < megabyte) != (filter == "true") {
		t.Errorf("%d bytes came, of which 17 MiB are a file that is not kept", came)
	}
	times := map[string]int{"false": 3, "true": 1}[filter]
	for i := range times { // the store is renewed, and later commits lean on what is not here
		changed[i*megabyte] ^= 1
		repo.CommitFiles(fmt.Sprint("again ", i), map[string]string{"a.yaml": fmt.Sprintf("a: %d\n", i), fmt.Sprintf("b%d.bin", i): string(noise(4 * megabyte)),
			"docs/video2.bin": string(changed), "docs/zeros.bin": strings.Repeat("\x00", 17*megabyte+i)})
		readable(t, r, want)
	}
	repo.CommitFiles("gone", map[string]string{"docs/video.bin": "small\n", "docs/video2.bin": "small, too\n"})
	want["docs/video.bin"], want["docs/video2.bin"] = true, true
	readable(t, r, want)
	readable(t, open(t, repo.Bare), want)
}

// TestManyLargeFilesAreNotKept: together they have no more than 128 MiB, and small files are none of them.
func TestManyLargeFilesAreNotKept(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{"z.yaml": "a: 1\n"}
	for i := range 20 {
		files[fmt.Sprintf("docs/%d.bin", i)] = strings.Repeat("\x00", 15*megabyte+i)
	}
	repo.CommitFiles("first", files)
	r := open(t, repo.Bare)
	readable(t, r, map[string]bool{"z.yaml": true})
	if used := r.Stats().Bytes; used > 130*megabyte {
		t.Errorf("%d MiB are kept, want 128", used/megabyte)
	}
}

// TestALargeFileIsAnEntry of its folder like any other.
func TestALargeFileIsAnEntry(t *testing.T) {
	repo := gittest.New(t)
	if err := os.WriteFile(filepath.Join(repo.Work, "big.bin"), make([]byte, 20*megabyte), 0o644); err != nil {
		t.Fatal(err)
	}
	repo.CommitFiles("first", map[string]string{"a.yaml": "a: 1\n"})
	r := open(t, repo.Bare)
	heads, err := r.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, _ := r.Held(heads.Main)
	entries, err := s.ReadDir("")
	if err != nil || len(entries) != 2 || entries[1].Name != "big.bin" || entries[1].Kind != rollout.File {
		t.Errorf("entries %v, error %v", entries, err)
	}
}
