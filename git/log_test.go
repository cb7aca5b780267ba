package git_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestLog checks that Log fetches the history in steps, and fetches nothing after visit has returned false.
func TestLog(t *testing.T) {
	const commits = 250
	repo, tip := logged(t, commits)

	for _, c := range []struct {
		name          string
		limit, enough int
		visited       int
		whole         bool
		fetches       int64
		fetched       int64 // number of fetched commits; each has three objects: the commit, a folder and a file
	}{
		{"the newest", 1000, 1, 1, false, 1, 1},
		{"some", 1000, 40, 40, false, 2, 100},
		{"all", 1000, 1000, commits, true, 3, commits},
		{"exactly all", commits, 1000, commits, true, 3, commits},
		{"limited", 120, 1000, 120, false, 3, 120},
		{"one", 1, 1000, 1, false, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mirrorOf(t, repo)
			n := 0
			whole, err := m.Log(t.Context(), tip, c.limit, func(s *git.Snapshot) (bool, error) {
				data, err := s.ReadFile("f")
				if want := fmt.Sprint(commits - n); err == nil && (string(data) != want || s.Commit().Subject != want) {
					t.Errorf("commit %d: file %q, subject %q", n, data, s.Commit().Subject)
				}
				n++
				return n < c.enough, err
			})
			if err != nil || n != c.visited || whole != c.whole {
				t.Errorf("visited %d, whole %t, error %v; want %d, %t", n, whole, err, c.visited, c.whole)
			}
			if s := m.Stats(); s.Fetches != c.fetches || s.Objects != 3*c.fetched {
				t.Errorf("%d fetches, %d objects; want %d, %d", s.Fetches, s.Objects, c.fetches, 3*c.fetched)
			}
		})
	}
	t.Run("an error ends it", func(t *testing.T) {
		m := mirrorOf(t, repo)
		stop := errors.New("stop")
		_, err := m.Log(t.Context(), tip, 10, func(*git.Snapshot) (bool, error) { return true, stop })
		wantError(t, "Log", err, stop)
	})
}

func mirrorOf(t testing.TB, repo *gittest.Repo) *git.Repo {
	t.Helper()
	return open(t, git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL, Branch: "main"})
}

// logged returns a repository with a branch, and the newest commit of this branch. Each commit of the branch changes one file.
func logged(t *testing.T, commits int) (repo *gittest.Repo, tip string) {
	t.Helper()
	repo = newRepo(t, map[string]string{"f": "0"})
	var stream strings.Builder
	for i := 1; i <= commits; i++ {
		text := fmt.Sprint(i)
		data := fmt.Sprintf("data %d\n%s\n", len(text), text)
		fmt.Fprintf(&stream, "commit refs/heads/state\ncommitter a <a@b> %d +0000\n%sM 644 inline f\n%s\n", 1e9+i, data, data)
	}
	repo.FastImport(stream.String())
	return repo, repo.Ref("state")
}

// TestLogAfterACutOffAnswer cuts off the response to a request for history, so that some commits lack files. The next
// Log must fetch these files and succeed.
func TestLogAfterACutOffAnswer(t *testing.T) {
	const commits = 90 // few enough for a single request
	repo, tip := logged(t, commits)
	server := repo.HTTP(gittest.HTTPOptions{})
	var left atomic.Int64 // bytes until a response is cut off; a negative number means never
	left.Store(-1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		server.Proxy().ServeHTTP(&cutOff{w, &left}, req)
	}))
	defer proxy.Close()
	proxy.Config.ErrorLog = gittest.NoLog()
	read := func(m *git.Repo, limit int) (n int, err error) {
		_, err = m.Log(t.Context(), tip, limit, func(s *git.Snapshot) (bool, error) {
			n++
			_, err := s.ReadFile("f")
			return true, err
		})
		return n, err
	}
	cut := 0
	for size := 1000; size < 20_000; size += 1000 {
		m := open(t, git.Options{URL: proxy.URL + "/" + path.Base(server.URL), Branch: "main"})
		_, err := read(m, 1)
		must(t, err)
		left.Store(int64(size))
		if _, err := read(m, 1000); err != nil {
			cut++
		}
		left.Store(-1)
		if n, err := read(m, 1000); err != nil || n != commits {
			t.Errorf("after an answer of %d bytes: %d commits, %v", size, n, err)
		}
	}
	if cut == 0 {
		t.Error("no answer was cut off")
	}
}

// cutOff breaks the connection when it has sent the given number of bytes.
type cutOff struct {
	http.ResponseWriter
	left *atomic.Int64
}

func (c *cutOff) Write(p []byte) (int, error) {
	left := c.left.Load()
	if left < 0 {
		return c.ResponseWriter.Write(p)
	}
	n, _ := c.ResponseWriter.Write(p[:min(len(p), int(left))])
	if c.left.CompareAndSwap(left, left-int64(n)) && left == int64(n) {
		panic(http.ErrAbortHandler)
	}
	return n, nil
}
