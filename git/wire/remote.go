package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Remote is a repository's address without credentials, to print and store.
type Remote struct {
	scheme string // https, http, ssh, git or file
	user   string // ssh only
	host   string // host or host:port
	path   string
}

// Auth holds optional credentials. The URL's scheme selects the fields.
type Auth struct {
	// Username and Password are for HTTP basic authentication. Forges accept a token as the password of any user.
	Username, Password string
	// Refresh, if set, returns the credentials for one HTTP request, because tokens expire.
	Refresh func(context.Context) (username, password string, err error)
	// Refused, if set, is called after status 401. The next Refresh should return other credentials.
	Refused func()
	TLS

	SSHKeyFile    string // private key (PEM), read for each connection; "": the SSH agent
	SSHPassphrase string
	KnownHosts    string // file that is read for each connection (default ~/.ssh/known_hosts)
}

// HTTP reports whether HTTP requests have credentials.
func (a Auth) HTTP() bool {
	return a.Username != "" || a.Password != "" || a.Refresh != nil
}

var scpLike = regexp.MustCompile(`^(?:([^@/\s]+)@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([^/].*|/.*)$`)

// ParseRemote parses an http(s), ssh, git or file URL, user@host:path, or a path.
func ParseRemote(raw string) (Remote, Auth, error) {
	switch {
	case raw == "" || strings.ContainsAny(raw, "\x00\n\r"):
		return Remote{}, Auth{}, errors.New("the repository's URL is empty or has control characters")
	case strings.Contains(raw, "://"):
		return parseURL(raw)
	}
	_, err := os.Stat(raw)
	if strings.Contains(raw, "::") && err != nil {
		return Remote{}, Auth{}, fmt.Errorf("repository %q: remote helpers are not supported", raw)
	}
	if m := scpLike.FindStringSubmatch(raw); m != nil && err != nil && !strings.HasPrefix(raw, "-") {
		return Remote{scheme: "ssh", user: m[1], host: m[2], path: m[3]}, Auth{}, nil
	}
	path, err := filepath.Abs(raw)
	if err != nil {
		return Remote{}, Auth{}, fmt.Errorf("repository %q: %w", raw, err)
	}
	return Remote{scheme: "file", path: path}, Auth{}, nil
}

func parseURL(raw string) (_ Remote, auth Auth, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of net/url quotes the URL, which may contain a password.
		return Remote{}, Auth{}, fmt.Errorf("repository URL %q is malformed", RedactURL(raw))
	}
	r := Remote{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(u.Host), path: u.Path}
	switch r.scheme {
	case "http", "https":
		r.path = strings.TrimRight(u.EscapedPath(), "/")
		if u.RawQuery != "" || u.Fragment != "" {
			return Remote{}, Auth{}, fmt.Errorf("repository URL %q: must not have a query or fragment", RedactURL(raw))
		}
		if u.User != nil {
			auth.Username = u.User.Username()
			auth.Password, _ = u.User.Password()
		}
	case "ssh", "git+ssh", "ssh+git":
		r.scheme, r.user = "ssh", u.User.Username()
	case "git":
	case "file":
		r.host = ""
		r.path = filepath.Clean(u.Path)
	default:
		return Remote{}, Auth{}, fmt.Errorf("repository URL %q: scheme %q must be https, http, ssh, git or file",
			RedactURL(raw), u.Scheme)
	}
	if r.scheme != "file" && (r.host == "" || strings.HasPrefix(r.host, "-")) {
		return Remote{}, Auth{}, fmt.Errorf("repository URL %q: no host", RedactURL(raw))
	}
	if r.path == "" || r.path == "/" {
		return Remote{}, Auth{}, fmt.Errorf("repository URL %q: no path", RedactURL(raw))
	}
	return r, auth, nil
}

// String returns the URL without credentials.
func (r Remote) String() string {
	switch {
	case r.scheme == "file":
		return r.path
	case r.user != "":
		return r.scheme + "://" + r.user + "@" + r.host + "/" + strings.TrimPrefix(r.path, "/")
	}
	return r.scheme + "://" + r.host + "/" + strings.TrimPrefix(r.path, "/")
}

// Local reports whether the repository is on disk.
func (r Remote) Local() bool { return r.scheme == "file" }

// IsBeside reports whether both repositories are on the same server, with the same user.
func (r Remote) IsBeside(o Remote) bool {
	return r.scheme == o.scheme && r.host == o.host && r.user == o.user
}

// loopback reports whether unencrypted connections are safe.
func (r Remote) loopback() bool {
	host := r.host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r Remote) hostPort(port string) string {
	if h, p, err := net.SplitHostPort(r.host); err == nil {
		return net.JoinHostPort(h, p)
	}
	return net.JoinHostPort(strings.Trim(r.host, "[]"), port)
}

// userinfo allows a slash in a password. net/url would read the text before the slash as a port.
var (
	userinfo = regexp.MustCompile(`(?s)^(.*?://)(?:[^/]*@|[^/@]*:.*@)`)
	query    = regexp.MustCompile(`\?\S*`)
)

// RedactURL removes the text before the last "@" of the authority, and the query.
func RedactURL(raw string) string {
	if !strings.Contains(raw, "://") {
		return raw
	}
	return query.ReplaceAllString(userinfo.ReplaceAllString(raw, "$1"), "")
}

// Complete sets credentials from variables such as GITROLLOUT_GIT_TOKEN and GITROLLOUT_SSH_PASSPHRASE. By default, a
// token's user is "x-access-token". For https, credentials may have only one source: variables, a file, or a GitHub
// App.
func (a *Auth) Complete(env func(string) string, now func() time.Time) error {
	const token, password, app = "GITROLLOUT_GIT_TOKEN", "GITROLLOUT_GIT_PASSWORD", "GITROLLOUT_GITHUB_APP_ID"
	set := []string{token, password, token + "_FILE", password + "_FILE", app}
	set = slices.DeleteFunc(set, func(name string) bool { return env(name) == "" })
	if len(set) > 1 {
		return fmt.Errorf("more than one credential for https is set; keep only one: %s", strings.Join(set, ", "))
	}
	a.SSHPassphrase, a.Username = env("GITROLLOUT_SSH_PASSPHRASE"), env("GITROLLOUT_GIT_USERNAME")
	if env(token)+env(token+"_FILE") != "" {
		a.Username = cmp.Or(a.Username, "x-access-token")
	}
	a.Password = env(token) + env(password)
	user, file := a.Username, env(token+"_FILE")+env(password+"_FILE")
	switch {
	case file != "":
		a.Refresh = func(context.Context) (string, string, error) {
			data, err := os.ReadFile(file)
			if secret := strings.TrimSpace(string(data)); err != nil || secret != "" {
				return user, secret, err
			}
			return "", "", fmt.Errorf("%s is empty", file)
		}
		if _, _, err := a.Refresh(context.Background()); err != nil {
			return err
		}
	case env(app) != "":
		clients, err := NewClients(a.TLS)
		if err != nil {
			return err
		}
		github := &GitHubApp{
			API: env("GITROLLOUT_GITHUB_API"), ID: env(app), Installation: env("GITROLLOUT_GITHUB_INSTALLATION_ID"),
			KeyFile: env("GITROLLOUT_GITHUB_KEY_FILE"), Clients: clients, Now: now,
		}
		a.Refresh, a.Refused = github.Refresh, github.Forget
		return github.Check()
	}
	return nil
}

// Token returns a function that gets the default token for a forge's API. The token is Refresh's password. Without
// Refresh, it is Password, or else the password in `repo`.
func (a *Auth) Token(repo string) func(context.Context) (string, error) {
	if a.Refresh != nil {
		return func(ctx context.Context) (string, error) {
			_, token, err := a.Refresh(ctx)
			return token, err
		}
	}
	token := a.Password
	if token == "" {
		if _, inURL, err := ParseRemote(repo); err == nil {
			token = inURL.Password
		}
	}
	return func(context.Context) (string, error) { return token, nil }
}
