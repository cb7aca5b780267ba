package gittest

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a running Git server. Its faults can be changed while it runs.
type Server struct {
	// URL is the clone URL, without credentials.
	URL string
	// CA is the certificate of a server with TLS, in PEM.
	CA []byte
	// KnownHosts and KeyFile are files for clients of an SSH server: the server's host key, and a private key that the server accepts.
	KnownHosts, KeyFile string

	stop    func()
	handler http.Handler // set only if the server uses smart HTTP

	mu       sync.Mutex
	requests []string
	faults   Faults
	pushes   int
	in, out  atomic.Int64 // bytes of HTTP bodies
}

// Faults are the faults that a server injects. Each push reduces the first positive number among RejectPushes,
// DropBefore and DropAfter.
type Faults struct {
	// RejectPushes is the number of pushes to which the server responds with 503, without running git.
	RejectPushes int
	// DropBefore is the number of pushes whose connection the server closes without running git, so no ref changes.
	DropBefore int
	// DropAfter is the number of pushes that git executes, but whose connection is closed before git's response.
	DropAfter int
	// BeforePush runs after the client has sent a push and before git gets it, for example to move a ref.
	// The argument n is the number of the push, counted from 1.
	BeforePush func(n int)
	// Delay delays every request.
	Delay time.Duration
	// Status, when not 0, is the status of the response to every request.
	Status int
	// ProtocolV0 disables protocol version 2, as on old servers.
	ProtocolV0 bool
}

// HTTPOptions configures Repo.HTTP.
type HTTPOptions struct {
	// User and Password require basic authentication if either is set; Token requires a bearer token.
	User, Password, Token string
	// TLS serves https with a self-signed certificate (Server.CA).
	TLS bool
	// Direct runs git, with two processes, for each request for the refs. By default, the response is cached until a ref moves.
	Direct bool
}

// HTTP serves the repository over smart HTTP: git http-backend behind net/http.
func (r *Repo) HTTP(opts HTTPOptions) *Server {
	r.t.Helper()
	s := &Server{}
	backend := &cgi.Handler{
		Path: r.program("git-http-backend"),
		Root: "/",
		Dir:  filepath.Dir(r.Bare),
		Env: append(Env(), "GIT_PROJECT_ROOT="+filepath.Dir(r.Bare), "GIT_HTTP_EXPORT_ALL=1",
			"REMOTE_USER=gittest"),
		Stderr: io.Discard,
	}
	var git http.Handler = backend
	if !opts.Direct {
		git = &refsCache{git: backend, answers: answers[*httptest.ResponseRecorder]{bare: r.Bare}}
	}
	s.handler = s.handle(opts, git)
	srv := httptest.NewUnstartedServer(s.handler)
	srv.Config.ErrorLog = NoLog()
	if opts.TLS {
		srv.StartTLS()
		s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	} else {
		srv.Start()
	}
	s.URL = srv.URL + "/" + filepath.Base(r.Bare)
	s.stop = sync.OnceFunc(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	r.t.Cleanup(s.stop)
	return s
}

func (s *Server) handle(opts HTTPOptions, git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		push := req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/git-receive-pack")
		f, n := s.next(req, push)
		if f.Delay > 0 {
			body, _ := io.ReadAll(req.Body) // net/http notices a closed connection only after the body has been read
			req.Body = io.NopCloser(bytes.NewReader(body))
			select {
			case <-time.After(f.Delay):
			case <-req.Context().Done():
				return
			}
		}
		switch {
		case f.Status != 0:
			http.Error(w, http.StatusText(f.Status), f.Status)
			return
		case !allowed(opts, req):
			w.Header().Set("WWW-Authenticate", `Basic realm="gittest"`)
			http.Error(w, "credentials please", http.StatusUnauthorized)
			return
		}
		if f.ProtocolV0 {
			req.Header.Del("Git-Protocol")
		}
		if push {
			switch {
			case f.RejectPushes > 0:
				http.Error(w, "try later", http.StatusServiceUnavailable)
				return
			case f.DropBefore > 0:
				panic(http.ErrAbortHandler)
			}
			if f.BeforePush != nil {
				f.BeforePush(n)
			}
			if f.DropAfter > 0 {
				git.ServeHTTP(httptest.NewRecorder(), req)
				panic(http.ErrAbortHandler)
			}
		}
		git.ServeHTTP(&counter{ResponseWriter: w, s: s}, req)
	})
}

func allowed(opts HTTPOptions, req *http.Request) bool {
	if opts.Token != "" {
		return req.Header.Get("Authorization") == "Bearer "+opts.Token
	}
	if opts.User == "" && opts.Password == "" {
		return true
	}
	user, password, ok := req.BasicAuth()
	return ok && user == opts.User && password == opts.Password
}

// next records a request. It returns the faults to inject and, for a push, the number of the push.
func (s *Server) next(req *http.Request, push bool) (Faults, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req.Method+" "+req.URL.RequestURI())
	s.in.Add(max(req.ContentLength, 0))
	f := s.faults
	if !push {
		return f, 0
	}
	s.pushes++
	for _, count := range []*int{&s.faults.RejectPushes, &s.faults.DropBefore, &s.faults.DropAfter} {
		if *count > 0 {
			*count--
			break
		}
	}
	return f, s.pushes
}

// Fault replaces the server's faults; the zero value removes them.
func (s *Server) Fault(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Requests returns every HTTP request so far, as "METHOD uri".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Bytes returns the number of bytes of HTTP bodies so far.
func (s *Server) Bytes() (in, out int64) { return s.in.Load(), s.out.Load() }

// Proxy returns the server's handler, for an HTTP proxy in a test.
func (s *Server) Proxy() http.Handler { return s.handler }

// NoLog returns a logger that discards all messages, for servers with expected errors.
func NoLog() *log.Logger { return log.New(io.Discard, "", 0) }

// Stop ends the server and its open connections.
func (s *Server) Stop() { s.stop() }

// counter counts the bytes of responses.
type counter struct {
	http.ResponseWriter
	s *Server
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.s.out.Add(int64(n))
	return n, err
}

func (c *counter) Flush() {
	_ = http.NewResponseController(c.ResponseWriter).Flush()
}
