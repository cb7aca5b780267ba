package git_test

import (
	"context"
	"errors"
	"net"
	"os"
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

func TestSSHTrust(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	s, other := repo.SSH(gittest.SSHOptions{}), repo.SSH(gittest.SSHOptions{})
	empty := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The other server's key under this server's name, as in an attack in the middle.
	key, err := os.ReadFile(other.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(key), " ")
	host := strings.TrimPrefix(s.URL, "ssh://git@")
	changed := filepath.Join(t.TempDir(), "known_hosts")
	addr, port, _ := strings.Cut(host[:strings.IndexByte(host, '/')], ":")
	if err := os.WriteFile(changed, []byte("["+addr+"]:"+port+" "+rest), 0o600); err != nil {
		t.Fatal(err)
	}
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
			r, err := git.Open(t.Context(), git.Options{URL: s.URL, Branch: "main", Auth: c.auth})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Fetch(t.Context()); !errors.Is(err, git.ErrAuth) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Fetch: %v, want ErrAuth with %q", err, c.text)
			}
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
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	ssh, daemon := repo.SSH(gittest.SSHOptions{}), repo.Daemon()
	for name, opts := range map[string]git.Options{"ssh": sshOptions(ssh), "git": {URL: daemon.URL}} {
		opts.Branch = "main"
		r, err := git.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name == "ssh" {
			ssh.Stop()
		} else {
			daemon.Stop()
		}
		if _, err := r.Fetch(t.Context()); !errors.Is(err, git.ErrUnreachable) {
			t.Errorf("%s server gone: %v, want ErrUnreachable", name, err)
		}
	}
	// A server that accepts and never answers must not exceed the time limit, in any phase.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	known := filepath.Join(t.TempDir(), "known_hosts")
	line, err := os.ReadFile(ssh.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(line), " ")
	_, port, _ := net.SplitHostPort(addr)
	if err := os.WriteFile(known, []byte("[127.0.0.1]:"+port+" "+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://" + addr + "/x", "git://" + addr + "/x", "ssh://git@" + addr + "/x"} {
		r, err := git.Open(t.Context(), git.Options{URL: url, Branch: "main", Timeout: 100 * time.Millisecond,
			Auth: wire.Auth{SSHKeyFile: ssh.KeyFile, KnownHosts: known}})
		if err != nil {
			t.Fatal(err)
		}
		// Without the limit this would never return.
		if _, err = r.Fetch(t.Context()); !errors.Is(err, git.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, silent: %v", url, err)
		}
	}
}

func TestLocalRepository(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"f": "1"})
	repo.Git("branch", "other")
	t.Chdir(repo.Work)
	// As in a hook, where git sets these variables for another repository.
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_INDEX_FILE", "/nonexistent/index")
	r, err := git.Open(t.Context(), git.Options{URL: ".", Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	heads, err := r.Fetch(t.Context())
	if err != nil || heads.Main != repo.Head() || r.Remote().String() != repo.Work || !r.Remote().Local() {
		t.Fatalf("worktree as a remote %s: %+v, %v", r.Remote(), heads, err)
	}
	edit := rollout.Update{Branch: "main", Old: heads.Main, Parent: heads.Main, Edits: map[string][]byte{"f": []byte("2")}, Message: "m", When: when}
	_, err = pushAll(t.Context(), r, edit)
	if !errors.Is(err, git.ErrRejected) || !strings.Contains(err.Error(), "checked out") {
		t.Errorf("push to the checked out branch: %v, want ErrRejected", err)
	}
	edit.Branch = "other"
	if _, err := pushAll(t.Context(), r, edit); err != nil {
		t.Errorf("push to another branch: %v", err)
	}
	for _, path := range []string{"/nonexistent/repo", t.TempDir()} {
		missing, err := git.Open(t.Context(), git.Options{URL: path, Branch: "main"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := missing.Fetch(t.Context()); !errors.Is(err, git.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", path, err)
		}
	}
}

func TestParseRemote(t *testing.T) {
	cases := map[string]string{ // "" = refused
		"https://github.com/org/repo.git":            "https://github.com/org/repo.git",
		"https://user:" + secret + "@github.com/o/r": "https://github.com/o/r",
		"https://" + secret + "@GitHub.com/o/r/":     "https://github.com/o/r",
		"http://127.0.0.1:8080/r":                    "http://127.0.0.1:8080/r",
		"ssh://git@host:2222/org/repo":               "ssh://git@host:2222/org/repo",
		"ssh://git:" + secret + "@host/org/repo":     "ssh://git@host/org/repo",
		"git@github.com:org/repo.git":                "ssh://git@github.com/org/repo.git",
		"host:repo":                                  "ssh://host/repo",
		"git://host/repo":                            "git://host/repo",
		"file:///srv/repo.git":                       "/srv/repo.git",
		"/srv/repo.git":                              "/srv/repo.git",
		"https://u:" + secret + "@/path":             "",
		"https://u:" + secret + "@host":              "",
		"https://u:" + secret + "/x@host:bad/y":      "",
		"https://u:" + secret + "@host:port/r":       "",
		"https://u:" + secret + "%zz@host/r":         "",
		"https://host/r?token=" + secret:             "",
		"ftp://u:" + secret + "@host/r":              "",
		"ext::sh -c " + secret:                       "",
		"ssh://-oProxyCommand=x/r":                   "",
		"":                                           "",
		"https://host/\nr":                           "",
	}
	for raw, want := range cases {
		remote, _, err := wire.ParseRemote(raw)
		if want == "" {
			if err == nil {
				t.Errorf("ParseRemote(%q) = %s", raw, remote)
			} else if strings.Contains(err.Error(), secret) && !strings.HasPrefix(raw, "ext") {
				t.Errorf("ParseRemote(%q) tells the secret: %v", raw, err)
			}
			continue
		}
		if err != nil || remote.String() != want {
			t.Errorf("ParseRemote(%q) = %s, %v, want %s", raw, remote, err, want)
		}
	}
	// Both forms are equal after parsing.
	file, fileAuth, _ := wire.ParseRemote("file:///srv/repo.git")
	if path, auth, err := wire.ParseRemote("/srv/repo.git"); err != nil || path != file || !compare.Equal(auth, fileAuth) {
		t.Errorf("a path is %+v, and with file:// %+v, error %v", path, file, err)
	}
	for _, url := range []string{"http://u:" + secret + "@example.com/r", "http://example.com/r"} {
		_, err := git.Open(t.Context(), git.Options{URL: url, Auth: wire.Auth{Password: secret}})
		if err == nil || !strings.Contains(err.Error(), "plain http") {
			t.Errorf("credentials over plain http to %s: %v", wire.RedactURL(url), err)
		}
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
