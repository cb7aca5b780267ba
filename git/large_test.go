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

// Most tests here are of files an eighth as large as those that are too large for a user: TestTheUsualBounds is of these.
const (
	times  = 8
	atMost = 16 * megabyte / times // of one file
)

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

// TestTheUsualBounds: a file of 16 MiB is kept, and not one of a byte more, whether the server can leave it out or not.
func TestTheUsualBounds(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"limit.bin": strings.Repeat("\x00", 16*megabyte), "more.bin": strings.Repeat("\x00", 16*megabyte+1)})
	for _, filter := range []string{"false", "true"} {
		repo.InBare("config", "uploadpack.allowFilter", filter)
		readable(t, open(t, repo.Bare), map[string]bool{"limit.bin": true, "more.bin": false})
	}
}

// TestLargeFilesAreNotKept: a file that is larger than one may be is known by its id alone, whether Git sends it whole or as what is
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
	old := noise(atMost * 17 / 16)
	repo.CommitFiles("first", map[string]string{"a.yaml": "a: 1\n", "docs/limit.bin": strings.Repeat("\x00", atMost),
		"docs/zeros.bin": strings.Repeat("\x00", atMost+1), "docs/video.bin": string(old)})
	changed := bytes.Clone(old)
	changed[atMost/2] ^= 1
	repo.CommitFiles("second", map[string]string{"docs/video2.bin": string(changed)})
	repo.InBare("repack", "-adfq", "--window=10")
	want := map[string]bool{"a.yaml": true, "docs/limit.bin": true, "docs/zeros.bin": false, "docs/video.bin": false, "docs/video2.bin": false}
	r := open(t, repo.Bare).Narrow(times)
	readable(t, r, want)
	if used := r.Stats().Bytes; used > atMost*20/16 {
		t.Errorf("%d bytes are kept, want %d", used, atMost)
	}
	if came := r.Stats().Received; (came < atMost/16) != (filter == "true") {
		t.Errorf("%d bytes came, of which %d are a file that is not kept", came, len(old))
	}
	for i := range map[string]int{"false": 3, "true": 1}[filter] { // the store is renewed, and later commits lean on what is not here
		changed[i*atMost/16] ^= 1
		repo.CommitFiles(fmt.Sprint("again ", i), map[string]string{"a.yaml": fmt.Sprintf("a: %d\n", i), fmt.Sprintf("b%d.bin", i): string(noise(3 * megabyte / 2)),
			"docs/video2.bin": string(changed), "docs/zeros.bin": strings.Repeat("\x00", len(old)+i)})
		readable(t, r, want)
	}
	repo.CommitFiles("gone", map[string]string{"docs/video.bin": "small\n", "docs/video2.bin": "small, too\n"})
	want["docs/video.bin"], want["docs/video2.bin"] = true, true
	readable(t, r, want)
	readable(t, open(t, repo.Bare).Narrow(times), want)
}

// TestManyLargeFilesAreNotKept: together they have no more than eight times as much as one may have, and small files are none of them.
func TestManyLargeFilesAreNotKept(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{"z.yaml": "a: 1\n"}
	for i := range 20 {
		files[fmt.Sprintf("docs/%d.bin", i)] = strings.Repeat("\x00", atMost*15/16+i)
	}
	repo.CommitFiles("first", files)
	r := open(t, repo.Bare).Narrow(times)
	readable(t, r, map[string]bool{"z.yaml": true})
	if used := r.Stats().Bytes; used > atMost*130/16 {
		t.Errorf("%d bytes are kept, want %d", used, 8*atMost)
	}
}

// TestALargeFileIsAnEntry of its folder like any other.
func TestALargeFileIsAnEntry(t *testing.T) {
	repo := gittest.New(t)
	if err := os.WriteFile(filepath.Join(repo.Work, "big.bin"), make([]byte, atMost*20/16), 0o644); err != nil {
		t.Fatal(err)
	}
	repo.CommitFiles("first", map[string]string{"a.yaml": "a: 1\n"})
	r := open(t, repo.Bare).Narrow(times)
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
