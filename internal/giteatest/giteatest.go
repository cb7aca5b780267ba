// Package giteatest gives tests a real Gitea, with its database and repositories in a temporary folder. The program
// bin/gitea is built from the module internal/gitea if it is missing. A start takes about three seconds.
//
// If Gitea does not start, the test fails. With -short, the test is skipped.
package giteatest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Server is a running Gitea. It stops when its test ends, and its folder is removed.
type Server struct {
	URL   string // http://127.0.0.1:port, without a trailing slash
	Admin Account
	tb    testing.TB
}

// Account is a user with a token.
type Account struct{ Name, Token string }

// password is the password of every account. Only this machine can reach the server.
const password = "Gitea-test-1"

// Start starts a Gitea that stops when the test ends.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("Gitea is only in make test-all")
	}
	s, err := start(tb)
	if err != nil {
		tb.Fatalf("gitea: %v", err)
	}
	return s
}

// User creates an account with a token. Without given scopes, the token has all scopes.
func (s *Server) User(name string, scopes ...string) Account {
	s.tb.Helper()
	s.Must(s.Admin, http.MethodPost, "/admin/users", map[string]any{
		"username": name, "email": name + "@example.com", "password": password, "must_change_password": false,
	}, nil)
	return Account{Name: name, Token: s.token(name, scopes...)}
}

func (s *Server) token(name string, scopes ...string) string {
	s.tb.Helper()
	if len(scopes) == 0 {
		scopes = []string{"all"}
	}
	var made struct {
		SHA1 string `json:"sha1"`
	}
	body, _ := json.Marshal(map[string]any{"name": "test", "scopes": scopes})
	req, _ := http.NewRequest(http.MethodPost, s.URL+"/api/v1/users/"+name+"/tokens", bytes.NewReader(body))
	req.SetBasicAuth(name, password)
	if status, text := s.do(req, &made); status != http.StatusCreated {
		s.tb.Fatalf("gitea: token for %s: %d %s", name, status, text)
	}
	return made.SHA1
}

// Repository creates an empty repository with default branch main, to which the collaborators can push. It returns
// "owner/name".
func (s *Server) Repository(owner Account, name string, collaborators ...Account) string {
	s.tb.Helper()
	s.Must(owner, http.MethodPost, "/user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
	full := owner.Name + "/" + name
	for _, c := range collaborators {
		s.Must(owner, http.MethodPut, "/repos/"+full+"/collaborators/"+c.Name, map[string]any{"permission": "write"}, nil)
	}
	return full
}

// CloneURL returns a repository's URL with an account's credentials.
func (s *Server) CloneURL(as Account, repository string) string {
	return strings.Replace(s.URL, "://", "://"+as.Name+":"+as.Token+"@", 1) + "/" + repository + ".git"
}

// API sends a request to a path below /api/v1, and returns the response's status and text. If the last argument is not
// nil, a successful response is decoded into this argument.
func (s *Server) API(as Account, method, path string, body, into any) (status int, text string) {
	s.tb.Helper()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			s.tb.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, s.URL+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		s.tb.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+as.Token)
	return s.do(req, into)
}

// Must sends a request, as API does, and fails the test unless the status is 2xx.
func (s *Server) Must(as Account, method, path string, body, into any) {
	s.tb.Helper()
	if status, text := s.API(as, method, path, body, into); status/100 != 2 {
		s.tb.Fatalf("gitea: %s %s as %s: %d %s", method, path, as.Name, status, text)
	}
}

func (s *Server) do(req *http.Request, into any) (int, string) {
	s.tb.Helper()
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		s.tb.Fatalf("gitea: %v", err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.tb.Fatalf("gitea: %s: %v", req.URL, err)
	}
	if into != nil && res.StatusCode/100 == 2 {
		if err := json.Unmarshal(data, into); err != nil {
			s.tb.Fatalf("gitea: %s: %v: %s", req.URL, err, data)
		}
	}
	return res.StatusCode, strings.TrimSpace(string(data))
}

// Eventually waits until a condition is true, at most for a minute.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not so within a minute: %s", what)
		}
	}
}
