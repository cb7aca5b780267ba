package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

const megabyte = 1 << 20

// Most tests use an eighth of the real size limit of a file. Only TestTheUsualBounds uses the real limit.
const (
	times  = 8
	atMost = 16 * megabyte / times // size of the largest file that the mirror keeps, in bytes
)

// narrow opens a mirror that keeps files of at most atMost bytes.
func narrow(t *testing.T, repo *gittest.Repo) *git.Repo {
	t.Helper()
	return open(t, git.Options{URL: repo.Bare, Branch: "main"}).Narrow(times)
}

// readable checks which files of the newest commit can be read. For files that cannot be read, the error must be ErrTooLarge.
func readable(t *testing.T, r *git.Repo, want map[string]bool) {
	t.Helper()
	s, held := r.Held(fetch(t, r).Main)
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

func zeros(size int) string { return strings.Repeat("\x00", size) }

// noise returns bytes that do not compress. After a change of a few bytes, Git sends the file as a delta.
func noise(size int) []byte {
	data := make([]byte, size)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{}), data)
	return data
}

// TestTheUsualBounds checks that a file of 16 MiB is kept, and that a file with one byte more is not kept. One server supports filters, and
// another lacks filters.
func TestTheUsualBounds(t *testing.T) {
	repo := newRepo(t, map[string]string{"limit.bin": zeros(16 * megabyte), "more.bin": zeros(16*megabyte + 1)})
	for _, filter := range []string{"false", "true"} {
		repo.InBare("config", "uploadpack.allowFilter", filter)
		readable(t, open(t, git.Options{URL: repo.Bare}), map[string]bool{"limit.bin": true, "more.bin": false})
	}
}

// TestLargeFilesAreNotKept checks that the content of too large a file is not kept, whether the server sends it whole or as a delta. All
// other files can be read, also in later commits and after a renewal of the store. A server with filters does not send the large files.
func TestLargeFilesAreNotKept(t *testing.T) {
	for _, filter := range []string{"false", "true"} {
		t.Run("filter "+filter, func(t *testing.T) { largeFilesAreNotKept(t, filter) })
	}
}

func largeFilesAreNotKept(t *testing.T, filter string) {
	repo := gittest.New(t)
	repo.InBare("config", "uploadpack.allowFilter", filter)
	old := noise(atMost * 17 / 16)
	repo.CommitFiles("first", map[string]string{"a.yaml": "a: 1\n", "docs/limit.bin": zeros(atMost),
		"docs/zeros.bin": zeros(atMost + 1), "docs/video.bin": string(old)})
	changed := bytes.Clone(old)
	changed[atMost/2] ^= 1
	repo.CommitFiles("second", map[string]string{"docs/video2.bin": string(changed)})
	repo.InBare("repack", "-adfq", "--window=10")
	want := map[string]bool{"a.yaml": true, "docs/limit.bin": true, "docs/zeros.bin": false, "docs/video.bin": false, "docs/video2.bin": false}
	r := narrow(t, repo)
	readable(t, r, want)
	if used := r.Stats().Bytes; used > atMost*20/16 {
		t.Errorf("%d bytes are kept, want %d", used, atMost)
	}
	if came := r.Stats().Received; (came < atMost/16) != (filter == "true") {
		t.Errorf("%d bytes came, of which %d are a file that is not kept", came, len(old))
	}
	// These commits cause a renewal of the store. The server sends deltas whose bases the mirror has omitted.
	for i := range map[string]int{"false": 3, "true": 1}[filter] {
		changed[i*atMost/16] ^= 1
		repo.CommitFiles(fmt.Sprint("again ", i), map[string]string{"a.yaml": fmt.Sprintf("a: %d\n", i),
			fmt.Sprintf("b%d.bin", i): string(noise(3 * megabyte / 2)),
			"docs/video2.bin":         string(changed), "docs/zeros.bin": zeros(len(old) + i)})
		readable(t, r, want)
	}
	repo.CommitFiles("gone", map[string]string{"docs/video.bin": "small\n", "docs/video2.bin": "small, too\n"})
	want["docs/video.bin"], want["docs/video2.bin"] = true, true
	readable(t, r, want)
	readable(t, narrow(t, repo), want)
}

// TestManyLargeFilesAreNotKept commits many files just below the limit for a file. Together, the kept files may take about eight times this
// limit. Small files are still kept.
func TestManyLargeFilesAreNotKept(t *testing.T) {
	repo := gittest.New(t)
	files := map[string]string{"z.yaml": "a: 1\n"}
	for i := range 20 {
		files[fmt.Sprintf("docs/%d.bin", i)] = zeros(atMost*15/16 + i)
	}
	repo.CommitFiles("first", files)
	r := narrow(t, repo)
	readable(t, r, map[string]bool{"z.yaml": true})
	if used := r.Stats().Bytes; used > atMost*130/16 {
		t.Errorf("%d bytes are kept, want %d", used, 8*atMost)
	}
}

// TestALargeFileIsAnEntry checks that ReadDir also lists files that are too large to keep.
func TestALargeFileIsAnEntry(t *testing.T) {
	repo := newRepo(t, map[string]string{"a.yaml": "a: 1\n", "big.bin": zeros(atMost * 20 / 16)})
	r := narrow(t, repo)
	s, _ := r.Held(fetch(t, r).Main)
	entries, err := s.ReadDir("")
	if err != nil || len(entries) != 2 || entries[1].Name != "big.bin" || entries[1].Kind != rollout.File {
		t.Errorf("entries %v, error %v", entries, err)
	}
}
