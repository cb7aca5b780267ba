package git_test

import (
	"bufio"
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
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// gitHub serves a request of GitHub's REST API as documented: POST /app/installations/{id}/access_tokens.
type gitHub struct {
	*httptest.Server
	key *rsa.PublicKey

	mu     sync.Mutex
	now    time.Time
	asked  int
	status int // if not 0, the status of all responses
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

// check returns the error with which GitHub would refuse a JSON Web Token, or nil if the token is valid.
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

// takes reports whether GitHub's Git server would accept a request's credentials.
func (g *gitHub) takes(req *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	user, password, _ := req.BasicAuth()
	return user == "x-access-token" && g.now.Before(g.tokens[password])
}

func (g *gitHub) change(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

func (g *gitHub) pass(d time.Duration) { g.change(func() { g.now = g.now.Add(d) }) }

func (g *gitHub) clock() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now }

func (g *gitHub) count() int { g.mu.Lock(); defer g.mu.Unlock(); return g.asked }

func rsaKey(t *testing.T, file string) *rsa.PublicKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	write(t, file, encoded("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)))
	return &key.PublicKey
}

func encoded(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return string(data)
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	must(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// through serves a repository over HTTP. It answers 401 to requests for which allow returns false.
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
	noSecret(t, err)
	return err
}

func TestGitHubApp(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	file := filepath.Join(t.TempDir(), "app.pem")
	hub := newGitHub(t, rsaKey(t, file))
	clients, err := wire.NewClients(wire.TLS{})
	must(t, err)
	app := &wire.GitHubApp{API: hub.URL + "/api/v3/", ID: "4711", Installation: "77", KeyFile: file, Clients: clients, Now: hub.clock}
	must(t, app.Check())
	r := open(t, git.Options{URL: through(t, repo, hub.takes), Branch: "main",
		Auth: wire.Auth{Refresh: app.Refresh, Refused: app.Forget}})
	fetch := func(what string, tokens int) {
		t.Helper()
		_, err := r.Fetch(t.Context())
		wantError(t, what, err, nil)
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
	// A token is revoked. After the server has refused it once, the next fetch gets a new token.
	hub.change(func() { clear(hub.tokens) })
	_, err = r.Fetch(t.Context())
	wantError(t, "revoked", err, git.ErrAuth)
	noSecret(t, err)
	fetch("after it was revoked", 4)
	// The GitHub App and the key file get another key. The next request for a token must use this key.
	hub.change(func() { hub.key = rsaKey(t, file) })
	hub.pass(2 * time.Hour)
	fetch("another key", 5)
	// A failure of GitHub (503) does not mean that the credentials are refused. No error may contain the JSON Web Token.
	for status, want := range map[int]error{503: git.ErrUnreachable, 403: git.ErrAuth} {
		hub.change(func() { hub.status = status })
		hub.pass(2 * time.Hour)
		if _, err := r.Fetch(t.Context()); !errors.Is(err, want) || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%d: %v, want %v", status, err, want)
		}
	}
	// The file contains no key any more, so no token is requested from GitHub.
	write(t, file, secret)
	before := hub.count()
	hub.pass(2 * time.Hour)
	_, err = r.Fetch(t.Context())
	wantError(t, "no key", err, git.ErrAuth, "not an RSA private key")
	noSecret(t, err)
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
	must(t, err)
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
		_, _, err := tt.app.Refresh(t.Context())
		compare.CheckError(t, name, err, tt.want)
	}
	for name, a := range map[string]*wire.GitHubApp{
		"no key":       app(func(a *wire.GitHubApp) { a.KeyFile = write(t, filepath.Join(dir, "none"), secret) }),
		"no file":      app(func(a *wire.GitHubApp) { a.KeyFile = filepath.Join(dir, "missing") }),
		"installation": app(func(a *wire.GitHubApp) { a.Installation = "my-org" }),
		"id":           app(func(a *wire.GitHubApp) { a.ID = "" }),
		"plain http":   app(func(a *wire.GitHubApp) { a.API = "http://github.example.com/api/v3" }),
		"password":     app(func(a *wire.GitHubApp) { a.API = "https://u:" + secret + "@github.example.com/api/v3" }),
	} {
		err := a.Check()
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		noSecret(t, err)
	}
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := certificate(1, "test CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return authority{cert: cert, key: key, pem: encoded("CERTIFICATE", der)}
}

// certificate returns a template for a certificate that is valid now.
func certificate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
}

// issue returns a new certificate for a name, and its private key. Both are PEM.
func (a authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := certificate(2, name)
	template.DNSNames, template.KeyUsage = []string{name}, x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	must(t, err)
	raw, err := x509.MarshalECPrivateKey(private)
	must(t, err)
	return encoded("CERTIFICATE", der), encoded("EC PRIVATE KEY", raw)
}

// proxy starts a CONNECT proxy that connects every name to one address. If password is not "", clients must send it.
func proxy(t *testing.T, to, password string) (url string, count func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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

// secure serves a repository over TLS with a certificate for git.example.com. If clients is not nil, each client needs
// a certificate of this authority.
func secure(t *testing.T, repo *gittest.Repo, server authority, clients *authority) (addr, url string) {
	t.Helper()
	inner := repo.HTTP(gittest.HTTPOptions{})
	cert, key := server.issue(t, "git.example.com")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(t, err)
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
	repo := newRepo(t, map[string]string{"f": "1"})
	ours, theirs := newAuthority(t), newAuthority(t)
	addr, url := secure(t, repo, ours, &theirs)
	dir := t.TempDir()
	file := func(name, content string) string { return write(t, filepath.Join(dir, name), content) }
	clientCert, clientKey := theirs.issue(t, "gitrollout")
	strangerCert, strangerKey := ours.issue(t, "gitrollout")
	ca, cert, key := file("ca", ours.pem), file("cert", clientCert), file("key", clientKey)
	free, opened := proxy(t, addr, "")
	locked, _ := proxy(t, addr, secret)
	withPassword := strings.Replace(locked, "//", "//ann:"+secret+"@", 1)
	through := func(proxy string) wire.TLS { return wire.TLS{CAFile: ca, CertFile: cert, KeyFile: key, Proxy: proxy} }
	for name, tt := range map[string]struct {
		how  wire.TLS
		want string // "" = success
	}{
		"all":                   {through(free), ""},
		"one file for both":     {wire.TLS{CAFile: ca, CertFile: file("both", clientCert+clientKey), Proxy: free}, ""},
		"proxy with a password": {through(withPassword), ""},
		"no password":           {through(locked), "Proxy Authentication Required"},
		"unknown CA":            {wire.TLS{CertFile: cert, KeyFile: key, Proxy: free}, "certificate"},
		"no certificate":        {wire.TLS{CAFile: ca, Proxy: free}, "certificate"},
		"another's certificate": {wire.TLS{CAFile: ca, CertFile: file("c2", strangerCert), KeyFile: file("k2", strangerKey), Proxy: free},
			"certificate"},
		"key of another":    {wire.TLS{CAFile: ca, CertFile: cert, KeyFile: file("k3", strangerKey), Proxy: free}, "client certificate"},
		"key without":       {wire.TLS{CAFile: ca, KeyFile: key, Proxy: free}, "name both"},
		"no CA in the file": {wire.TLS{CAFile: file("no", secret), Proxy: free}, "holds no PEM"},
		"missing file":      {wire.TLS{CAFile: filepath.Join(dir, "missing"), Proxy: free}, "CA file"},
		"no proxy there":    {through("http://ann:" + secret + "@127.0.0.1:1"), "unreachable"},
		"no URL":            {wire.TLS{Proxy: "ann:" + secret + "@proxy"}, "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			compare.CheckError(t, "Fetch", fetchFrom(t, url, wire.Auth{TLS: tt.how}), tt.want)
		})
	}
	if opened() == 0 {
		t.Error("nothing went through the proxy")
	}
	// The certificate files change while the process runs.
	r := open(t, git.Options{URL: url, Branch: "main", Auth: wire.Auth{TLS: through(free)}})
	fetch(t, r)
	file("cert", strangerCert)
	file("key", strangerKey)
	if _, err := r.Fetch(t.Context()); err == nil {
		t.Error("the certificate on the disk is another one, and the old one is used")
	}
	clientCert, clientKey = theirs.issue(t, "gitrollout")
	file("cert", clientCert)
	file("key", clientKey)
	fetch(t, r)
}

func TestRotation(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	one, two := repo.SSH(gittest.SSHOptions{}), repo.SSH(gittest.SSHOptions{})
	dir := t.TempDir()
	key := write(t, filepath.Join(dir, "key"), read(t, two.KeyFile))
	known := write(t, filepath.Join(dir, "known_hosts"), read(t, two.KnownHosts))
	r := open(t, git.Options{URL: one.URL, Branch: "main", Auth: wire.Auth{SSHKeyFile: key, KnownHosts: known}})
	fetch := func(want string) {
		t.Helper()
		_, err := r.Fetch(t.Context())
		compare.CheckError(t, "Fetch", err, want)
	}
	fetch("is not in")
	write(t, known, read(t, one.KnownHosts))
	fetch("unable to authenticate")
	write(t, key, read(t, one.KeyFile))
	fetch("")
	write(t, key, "")
	fetch("is empty")
}

// TestProxyOfEnvironment checks HTTPS_PROXY and NO_PROXY in child processes, because a process reads these variables only once.
func TestProxyOfEnvironment(t *testing.T) {
	if url := os.Getenv("GIT_TEST_URL"); url != "" {
		must(t, fetchFrom(t, url, wire.Auth{TLS: wire.TLS{CAFile: os.Getenv("GIT_TEST_CA")}}))
		return
	}
	repo := newRepo(t, map[string]string{"f": "1"})
	ca := newAuthority(t)
	addr, url := secure(t, repo, ca, nil)
	through, count := proxy(t, addr, "")
	for _, tt := range []struct {
		env []string
		ok  bool
	}{
		{[]string{"HTTPS_PROXY=" + through}, true},
		{[]string{"https_proxy=" + through, "NO_PROXY=other.example.com"}, true},
		{[]string{"HTTPS_PROXY=" + through, "NO_PROXY=.example.com"}, false}, // the direct connection fails, because this host does not exist
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
