package gittest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// refsCache answers polls for the list of refs with git's previous answer until a ref moves. Programs under test poll
// five times a second, and each poll would be two processes.
type refsCache struct {
	git  http.Handler
	bare string

	mu      sync.Mutex
	refs    string // the refs of the answers
	answers map[string]*httptest.ResponseRecorder
}

func (c *refsCache) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	key, is := refsQuestion(req)
	if !is {
		c.git.ServeHTTP(w, req)
		return
	}
	before := refsOf(c.bare)
	answer := c.known(before, key)
	if answer == nil {
		answer = httptest.NewRecorder()
		c.git.ServeHTTP(answer, req)
		if answer.Code == http.StatusOK && before != "" && refsOf(c.bare) == before {
			c.keep(before, key, answer)
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (c *refsCache) known(refs, key string) *httptest.ResponseRecorder {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refs != refs {
		return nil
	}
	return c.answers[key]
}

func (c *refsCache) keep(refs, key string, answer *httptest.ResponseRecorder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refs != refs {
		c.refs, c.answers = refs, map[string]*httptest.ResponseRecorder{}
	}
	c.answers[key] = answer
}

// refsQuestion returns a cache key for a request, and reports whether it is about refs.
func refsQuestion(req *http.Request) (key string, is bool) {
	key = req.Method + " " + req.URL.RequestURI() + " " + req.Header.Get("Git-Protocol") + "\n"
	if req.Method == http.MethodGet {
		return key, strings.HasSuffix(req.URL.Path, "/info/refs") && req.URL.Query().Get("service") == "git-upload-pack"
	}
	if !strings.HasSuffix(req.URL.Path, "/git-upload-pack") || req.ContentLength < 0 || req.ContentLength > 4096 {
		return "", false
	}
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return key + string(body), err == nil && bytes.Contains(body, []byte("command=ls-refs"))
}

// refsOf returns every file in which git keeps refs, with its content; "" if they cannot be read at this moment.
func refsOf(bare string) string {
	var all strings.Builder
	add := func(path string) error {
		data, err := os.ReadFile(path)
		all.WriteString(path + " " + string(data) + "\n")
		return err
	}
	err := filepath.WalkDir(filepath.Join(bare, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return add(path)
	})
	for _, file := range []string{"HEAD", "config", "packed-refs"} {
		if e := add(filepath.Join(bare, file)); e != nil && !os.IsNotExist(e) {
			err = e
		}
	}
	if err != nil {
		return ""
	}
	return all.String()
}
