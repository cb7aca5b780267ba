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

// answers caches git's output for a bare repository until a ref of the repository moves. It assumes that no object is deleted.
type answers[T any] struct {
	bare string

	mu    sync.Mutex
	known map[string]map[string]T // by the result of refsOf (only the newest result), then by question
}

// get returns the answer to a question. If the cache has no answer for the current refs, get calls `ask`, and caches a
// good answer.
func (a *answers[T]) get(question string, ask func() (answer T, good bool)) T {
	refs := refsOf(a.bare)
	a.mu.Lock()
	answer, good := a.known[refs][question]
	a.mu.Unlock()
	if good {
		return answer
	}
	if answer, good = ask(); good && refs != "" && refsOf(a.bare) == refs {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.known[refs] == nil {
			a.known = map[string]map[string]T{refs: {}}
		}
		a.known[refs][question] = answer
	}
	return answer
}

// refsCache serves requests for the list of refs from a cache of git's responses. Programs under test send
// five such requests per second, and git would start two processes for each request.
type refsCache struct {
	git     http.Handler
	answers answers[*httptest.ResponseRecorder]
}

func (c *refsCache) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	question, is := refsQuestion(req)
	if !is {
		c.git.ServeHTTP(w, req)
		return
	}
	answer := c.answers.get(question, func() (*httptest.ResponseRecorder, bool) {
		answer := httptest.NewRecorder()
		c.git.ServeHTTP(answer, req)
		return answer, answer.Code == http.StatusOK
	})
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// refsQuestion returns a cache key for a request, and whether the request asks for refs.
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

// refsOf returns the names and contents of all files in which git stores refs, or "" if a file cannot currently be read.
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
