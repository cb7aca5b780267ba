package git_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// knownAt returns a known_hosts file that lists the server's key for the given address.
func knownAt(t *testing.T, addr string, s *gittest.Server) (file string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	must(t, err)
	_, key, _ := strings.Cut(read(t, s.KnownHosts), " ")
	return write(t, filepath.Join(t.TempDir(), "known_hosts"), "["+host+"]:"+port+" "+key)
}

func TestSSHTrust(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	s, other := repo.SSH(gittest.SSHOptions{}), repo.SSH(gittest.SSHOptions{})
	empty := write(t, filepath.Join(t.TempDir(), "known_hosts"), "")
	// This known_hosts file lists another server's key for the address. A man in the middle would also present an unlisted key.
	addr, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "ssh://git@"), "/")
	changed := knownAt(t, addr, other)
	cases := map[string]struct {
		auth wire.Auth
		text string
	}{
		"unknown host": {wire.Auth{SSHKeyFile: s.KeyFile, KnownHosts: empty}, "is not in"},
		"changed host": {wire.Auth{SSHKeyFile: s.KeyFile, KnownHosts: changed}, "does not match"},
		"unknown user": {wire.Auth{SSHKeyFile: repo.NewKeyFile(), KnownHosts: s.KnownHosts}, "unable to authenticate"},
		"no agent":     {wire.Auth{KnownHosts: s.KnownHosts}, "SSH_AUTH_SOCK"},
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, git.Options{URL: s.URL, Branch: "main", Auth: c.auth}).Fetch(t.Context())
			wantError(t, "Fetch", err, git.ErrAuth, c.text)
		})
	}
	for name, auth := range map[string]wire.Auth{
		"no known_hosts": {SSHKeyFile: s.KeyFile, KnownHosts: empty + ".missing"},
		"no key file":    {SSHKeyFile: s.KeyFile + ".missing", KnownHosts: s.KnownHosts},
		"no key":         {SSHKeyFile: s.KnownHosts, KnownHosts: s.KnownHosts},
	} {
		if _, err := git.Open(t.Context(), git.Options{URL: s.URL, Auth: auth}); err == nil {
			t.Errorf("%s: Open succeeded", name)
		}
	}
}

func TestUnreachable(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	ssh, daemon := repo.SSH(gittest.SSHOptions{}), repo.Daemon()
	for server, opts := range map[*gittest.Server]git.Options{ssh: sshOptions(ssh), daemon: {URL: daemon.URL}} {
		r := open(t, opts)
		fetch(t, r)
		server.Stop()
		_, err := r.Fetch(t.Context())
		wantError(t, opts.URL+" is gone", err, git.ErrUnreachable)
	}
	// On every transport, Fetch must end within the time limit if the server accepts a connection and never answers.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	addr := l.Addr().String()
	auth := wire.Auth{SSHKeyFile: ssh.KeyFile, KnownHosts: knownAt(t, addr, ssh)}
	for _, url := range []string{"http://" + addr + "/x", "git://" + addr + "/x", "ssh://git@" + addr + "/x"} {
		r := open(t, git.Options{URL: url, Branch: "main", Timeout: 100 * time.Millisecond, Auth: auth})
		_, err := r.Fetch(t.Context()) // without the time limit, Fetch would never return
		wantError(t, url, err, git.ErrUnreachable)
		wantError(t, url, err, context.DeadlineExceeded)
	}
}

func TestLocalRepository(t *testing.T) {
	repo := newRepo(t, map[string]string{"f": "1"})
	repo.Git("branch", "other")
	t.Chdir(repo.Work)
	// In a hook, git sets these variables to the hook's repository. They must not affect another repository.
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_INDEX_FILE", "/nonexistent/index")
	r := open(t, git.Options{URL: ".", Branch: "main"})
	heads := fetch(t, r)
	if heads.Main != repo.Head() || r.Remote().String() != repo.Work || !r.Remote().Local() {
		t.Fatalf("worktree as a remote %s: %+v", r.Remote(), heads)
	}
	edit := update("main", heads.Main, "m", map[string][]byte{"f": []byte("2")})
	_, err := pushAll(t.Context(), r, edit)
	wantError(t, "push to the checked out branch", err, git.ErrRejected, "checked out")
	edit.Branch = "other"
	push(t, r, edit)
	for _, path := range []string{"/nonexistent/repo", t.TempDir()} {
		_, err := open(t, git.Options{URL: path, Branch: "main"}).Fetch(t.Context())
		wantError(t, path, err, git.ErrNotFound)
	}
}

func TestPlainHTTPTakesNoCredentials(t *testing.T) {
	for _, url := range []string{"http://u:" + secret + "@example.com/r", "http://example.com/r"} {
		_, err := git.Open(t.Context(), git.Options{URL: url, Auth: wire.Auth{Password: secret}})
		compare.CheckError(t, wire.RedactURL(url), err, "plain http")
		noSecret(t, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, opts := range map[string]git.Options{
		"branch":   {URL: "/x", Branch: "a..b"},
		"state":    {URL: "/x", StateBranch: "-x"},
		"cluster":  {URL: "/x", Cluster: "a/b"},
		"cluster2": {URL: "/x", Cluster: "a b"},
		"identity": {URL: "/x", Identity: rollout.Identity{Name: "a<b", Email: "c"}},
		"no email": {URL: "/x", Identity: rollout.Identity{Name: "a"}},
		"CA":       {URL: "https://x/y", Auth: wire.Auth{TLS: wire.TLS{CAFile: "links_test.go"}}},
	} {
		if _, err := git.Open(t.Context(), opts); err == nil {
			t.Errorf("%s: Open(%+v) succeeded", name, opts)
		}
	}
}
