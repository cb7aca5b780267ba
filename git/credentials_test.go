package git_test

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// gitHub answers a documented request of GitHub's REST API: POST /app/installations/{id}/access_tokens.
type gitHub struct {
	*httptest.Server
	key *rsa.PublicKey

	mu     sync.Mutex
	now    time.Time
	asked  int
	status int // if not 0, the answer to every request
	tokens map[string]time.Time
}

func newGitHub(t *testing.T, key *rsa.PublicKey) *gitHub {
	g := &gitHub{key: key, now: time.Unix(1_800_000_000, 0), tokens: map[string]time.Time{}}
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

func (g *gitHub) serve(w http.ResponseWriter, req *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	switch {
	case g.status != 0:
		answer(g.status, map[string]string{"message": "you sent " + req.Header.Get("Authorization")})
	case req.Method != http.MethodPost || req.URL.Path != "/api/v3/app/installations/77/access_tokens":
		answer(404, map[string]string{"message": "Not Found", "documentation_url": "https://docs.github.com/rest"})
	case req.Header.Get("Accept") != "application/vnd.github+json":
		answer(415, map[string]string{"message": "Must accept 'application/json'"})
	default:
		if err := g.check(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")); err != nil {
			answer(401, map[string]string{"message": err.Error()})
			return
		}
		token := fmt.Sprintf("ghs_%s%d", secret, g.asked)
		g.tokens[token] = g.now.Add(time.Hour)
		answer(201, map[string]any{
			"token": token, "expires_at": g.now.Add(time.Hour).UTC().Format(time.RFC3339),
			"permissions": map[string]string{"contents": "write"}, "repository_selection": "selected",
		})
	}
}

// check returns GitHub's error for a JSON Web Token.
func (g *gitHub) check(jwt string) error {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return errors.New("A JSON web token could not be decoded")
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			return errors.New("A JSON web token could not be decoded")
		}
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch {
	case json.Unmarshal(raw[0], &head) != nil || json.Unmarshal(raw[1], &claims) != nil || head.Alg != "RS256":
		return errors.New("A JSON web token could not be decoded")
	case rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], raw[2]) != nil:
		return errors.New("A JSON web token could not be decoded")
	case claims.Iss != "4711":
		return errors.New("Integration not found")
	case claims.Iat > g.now.Unix():
		return errors.New("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case claims.Exp <= g.now.Unix():
		return errors.New("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case claims.Exp-g.now.Unix() > 600:
		return errors.New("'Expiration time' claim ('exp') is too far in the future")
	}
	return nil
}

// takes reports whether GitHub's Git server accepts a request.
func (g *gitHub) takes(req *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	user, password, _ := req.BasicAuth()
	return user == "x-access-token" && g.now.Before(g.tokens[password])
}

func (g *gitHub) pass(d time.Duration) { g.mu.Lock(); defer g.mu.Unlock(); g.now = g.now.Add(d) }

func (g *gitHub) clock() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now }

func (g *gitHub) count() int { g.mu.Lock(); defer g.mu.Unlock(); return g.asked }

func rsaKey(t *testing.T, file string) *rsa.PublicKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	write(t, file, string(pem.EncodeToMemory(block)))
	return &key.PublicKey
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// through serves a repository behind a check of each request.
func through(t *testing.T, repo *gittest.Repo, allow func(*http.Request) bool) string {
	t.Helper()
	inner := repo.HTTP(gittest.HTTPOptions{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !allow(req) {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		inner.Proxy().ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/" + filepath.Base(repo.Bare)
}

func fetchFrom(t *testing.T, url string, auth wire.Auth) error {
	t.Helper()
	r, err := git.Open(t.Context(), git.Options{URL: url, Branch: "main", Auth: auth})
	if err == nil {
		_, err = r.Fetch(t.Context())
	}
	if err != nil {
		noSecret(t, err)
	}
	return err
}

func TestGitHubApp(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	file := filepath.Join(t.TempDir(), "app.pem")
	hub := newGitHub(t, rsaKey(t, file))
	clients, err := wire.NewClients(wire.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	app := &wire.GitHubApp{API: hub.URL + "/api/v3/", ID: "4711", Installation: "77", KeyFile: file, Clients: clients, Now: hub.clock}
	if err := app.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := git.Open(t.Context(), git.Options{URL: through(t, repo, hub.takes), Branch: "main", Auth: wire.Auth{Refresh: app.Refresh, Refused: app.Forget}})
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(what string, tokens int) {
		t.Helper()
		if _, err := r.Fetch(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := hub.count(); got != tokens {
			t.Errorf("%s: %d tokens so far, want %d", what, got, tokens)
		}
	}
	fetch("first", 1)
	fetch("again", 1)
	hub.pass(54 * time.Minute)
	fetch("six minutes before its end", 1)
	hub.pass(2 * time.Minute)
	fetch("four minutes before its end", 2)
	hub.pass(30 * time.Hour)
	fetch("long after", 3)
	// A revoked token is replaced after one refusal.
	hub.mu.Lock()
	clear(hub.tokens)
	hub.mu.Unlock()
	if _, err := r.Fetch(t.Context()); !errors.Is(err, git.ErrAuth) {
		t.Errorf("revoked: %v", err)
	} else {
		noSecret(t, err)
	}
	fetch("after it was revoked", 4)
	// The key changes: the file is read again.
	hub.mu.Lock()
	hub.key = rsaKey(t, file)
	hub.mu.Unlock()
	hub.pass(2 * time.Hour)
	fetch("another key", 5)
	// GitHub fails: this does not count as a refusal, and the token in its answer is redacted.
	for status, want := range map[int]error{503: git.ErrUnreachable, 403: git.ErrAuth} {
		hub.mu.Lock()
		hub.status = status
		hub.mu.Unlock()
		hub.pass(2 * time.Hour)
		if _, err := r.Fetch(t.Context()); !errors.Is(err, want) || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%d: %v, want %v", status, err, want)
		}
	}
	// The file is no longer a key: there is no new token, and no request to GitHub.
	write(t, file, secret)
	before := hub.count()
	hub.pass(2 * time.Hour)
	if _, err := r.Fetch(t.Context()); !errors.Is(err, git.ErrAuth) || !strings.Contains(err.Error(), "not an RSA private key") {
		t.Errorf("no key: %v", err)
	} else {
		noSecret(t, err)
	}
	if got := hub.count(); got != before {
		t.Errorf("GitHub was asked %d times without a key", got-before)
	}
}

func TestGitHubAppRefused(t *testing.T) {
	dir := t.TempDir()
	good, other := filepath.Join(dir, "good.pem"), filepath.Join(dir, "other.pem")
	hub := newGitHub(t, rsaKey(t, good))
	rsaKey(t, other)
	clients, err := wire.NewClients(wire.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	app := func(change func(*wire.GitHubApp)) *wire.GitHubApp {
		a := &wire.GitHubApp{API: hub.URL + "/api/v3", ID: "4711", Installation: "77", KeyFile: good, Clients: clients, Now: hub.clock}
		change(a)
		return a
	}
	for name, tt := range map[string]struct {
		app  *wire.GitHubApp
		want string
	}{
		"other key":          {app(func(a *wire.GitHubApp) { a.KeyFile = other }), "could not be decoded"},
		"other app":          {app(func(a *wire.GitHubApp) { a.ID = "4712" }), "Integration not found"},
		"other installation": {app(func(a *wire.GitHubApp) { a.Installation = "78" }), "Not Found"},
		"clock is behind":    {app(func(a *wire.GitHubApp) { a.Now = func() time.Time { return hub.clock().Add(-time.Hour) } }), "exp"},
		"clock is ahead":     {app(func(a *wire.GitHubApp) { a.Now = func() time.Time { return hub.clock().Add(time.Hour) } }), "iat"},
	} {
		if err := tt.app.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := tt.app.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for name, a := range map[string]*wire.GitHubApp{
		"no key":       app(func(a *wire.GitHubApp) { a.KeyFile = write(t, filepath.Join(dir, "none"), secret) }),
		"no file":      app(func(a *wire.GitHubApp) { a.KeyFile = filepath.Join(dir, "missing") }),
		"installation": app(func(a *wire.GitHubApp) { a.Installation = "my-org" }),
		"id":           app(func(a *wire.GitHubApp) { a.ID = "" }),
		"plain http":   app(func(a *wire.GitHubApp) { a.API = "http://github.example.com/api/v3" }),
		"password":     app(func(a *wire.GitHubApp) { a.API = "https://u:" + secret + "@github.example.com/api/v3" }),
	} {
		if err := a.Check(); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			noSecret(t, err)
		}
	}
}

// authority is a certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, pem: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue returns a certificate for a name and its key, as PEM.
func (a authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
}

// proxy starts a real CONNECT proxy. It connects every name to one address, and may ask for a password.
func proxy(t *testing.T, to, password string) (url string, count func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	n := 0
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				req, err := http.ReadRequest(r)
				if err != nil || req.Method != http.MethodConnect {
					_, _ = io.WriteString(conn, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
					return
				}
				want := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+password))
				if password != "" && req.Header.Get("Proxy-Authorization") != want {
					_, _ = io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
					return
				}
				mu.Lock()
				n++
				mu.Unlock()
				server, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer server.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
				go func() { _, _ = io.Copy(server, r); _ = server.(*net.TCPConn).CloseWrite() }()
				_, _ = io.Copy(conn, server)
			}()
		}
	}()
	return "http://" + l.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// secure serves a repository with a certificate for git.example.com. With clients, it accepts only their
// certificates.
func secure(t *testing.T, repo *gittest.Repo, server authority, clients *authority) (addr, url string) {
	t.Helper()
	inner := repo.HTTP(gittest.HTTPOptions{})
	cert, key := server.issue(t, "git.example.com")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(inner.Proxy())
	s.Config.ErrorLog = gittest.NoLog()
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		s.TLS.ClientCAs = x509.NewCertPool()
		s.TLS.ClientCAs.AddCert(clients.cert)
		s.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), "https://git.example.com/" + filepath.Base(repo.Bare)
}

func TestProxyAndAuthorities(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	ours, theirs := newAuthority(t), newAuthority(t)
	addr, url := secure(t, repo, ours, &theirs)
	dir := t.TempDir()
	file := func(name, content string) string { return write(t, filepath.Join(dir, name), content) }
	clientCert, clientKey := theirs.issue(t, "gitrollout")
	strangerCert, strangerKey := ours.issue(t, "gitrollout")
	ca, cert, key := file("ca", ours.pem), file("cert", clientCert), file("key", clientKey)
	open, opened := proxy(t, addr, "")
	locked, _ := proxy(t, addr, secret)
	withPassword := strings.Replace(locked, "//", "//ann:"+secret+"@", 1)
	for name, tt := range map[string]struct {
		how  wire.TLS
		want string // "" = success
	}{
		"all":                   {wire.TLS{CAFile: ca, CertFile: cert, KeyFile: key, Proxy: open}, ""},
		"one file for both":     {wire.TLS{CAFile: ca, CertFile: file("both", clientCert+clientKey), Proxy: open}, ""},
		"proxy with a password": {wire.TLS{CAFile: ca, CertFile: cert, KeyFile: key, Proxy: withPassword}, ""},
		"no password":           {wire.TLS{CAFile: ca, CertFile: cert, KeyFile: key, Proxy: locked}, "Proxy Authentication Required"},
		"unknown CA":            {wire.TLS{CertFile: cert, KeyFile: key, Proxy: open}, "certificate"},
		"no certificate":        {wire.TLS{CAFile: ca, Proxy: open}, "certificate"},
		"another's certificate": {wire.TLS{CAFile: ca, CertFile: file("c2", strangerCert), KeyFile: file("k2", strangerKey), Proxy: open}, "certificate"},
		"key of another":        {wire.TLS{CAFile: ca, CertFile: cert, KeyFile: file("k3", strangerKey), Proxy: open}, "client certificate"},
		"key without":           {wire.TLS{CAFile: ca, KeyFile: key, Proxy: open}, "name both"},
		"no CA in the file":     {wire.TLS{CAFile: file("no", secret), Proxy: open}, "holds no PEM"},
		"missing file":          {wire.TLS{CAFile: filepath.Join(dir, "missing"), Proxy: open}, "CA file"},
		"no proxy there":        {wire.TLS{CAFile: ca, CertFile: cert, KeyFile: key, Proxy: "http://ann:" + secret + "@127.0.0.1:1"}, "unreachable"},
		"no URL":                {wire.TLS{Proxy: "ann:" + secret + "@proxy"}, "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fetchFrom(t, url, wire.Auth{TLS: tt.how})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if opened() == 0 {
		t.Error("nothing went through the proxy")
	}
	// All files change while the program runs.
	r, err := git.Open(t.Context(), git.Options{URL: url, Branch: "main", Auth: wire.Auth{TLS: wire.TLS{CAFile: ca, CertFile: cert, KeyFile: key, Proxy: open}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	file("cert", strangerCert)
	file("key", strangerKey)
	if _, err := r.Fetch(t.Context()); err == nil {
		t.Error("the certificate on the disk is another one, and the old one is used")
	}
	clientCert, clientKey = theirs.issue(t, "gitrollout")
	file("cert", clientCert)
	file("key", clientKey)
	if _, err := r.Fetch(t.Context()); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
}

func TestRotation(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	one, two := repo.SSH(gittest.SSHOptions{}), repo.SSH(gittest.SSHOptions{})
	dir := t.TempDir()
	read := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	key := write(t, filepath.Join(dir, "key"), read(two.KeyFile))
	known := write(t, filepath.Join(dir, "known_hosts"), read(two.KnownHosts))
	r, err := git.Open(t.Context(), git.Options{URL: one.URL, Branch: "main", Auth: wire.Auth{SSHKeyFile: key, KnownHosts: known}})
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(want string) {
		t.Helper()
		_, err := r.Fetch(context.Background())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fetch("is not in")
	write(t, known, read(one.KnownHosts))
	fetch("unable to authenticate")
	write(t, key, read(one.KeyFile))
	fetch("")
	write(t, key, "")
	fetch("is empty")
}

// TestProxyOfEnvironment starts itself again, since a process reads these variables only once.
func TestProxyOfEnvironment(t *testing.T) {
	if url := os.Getenv("GIT_TEST_URL"); url != "" {
		if err := fetchFrom(t, url, wire.Auth{TLS: wire.TLS{CAFile: os.Getenv("GIT_TEST_CA")}}); err != nil {
			t.Fatal(err)
		}
		return
	}
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	ca := newAuthority(t)
	addr, url := secure(t, repo, ca, nil)
	through, count := proxy(t, addr, "")
	for _, tt := range []struct {
		env []string
		ok  bool
	}{
		{[]string{"HTTPS_PROXY=" + through}, true},
		{[]string{"https_proxy=" + through, "NO_PROXY=other.example.com"}, true},
		{[]string{"HTTPS_PROXY=" + through, "NO_PROXY=.example.com"}, false}, // this host does not exist
		{nil, false},
	} {
		before := count()
		cmd := exec.Command(os.Args[0], "-test.run=^TestProxyOfEnvironment$")
		cmd.Env = append(append(gittest.Env(), "GIT_TEST_URL="+url, "GIT_TEST_CA="+write(t, filepath.Join(t.TempDir(), "ca"), ca.pem)), tt.env...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != tt.ok || (count() > before) != tt.ok {
			t.Errorf("%v: %v, %d connections through the proxy\n%s", tt.env, err, count()-before, out)
		}
	}
}
