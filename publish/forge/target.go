package forge

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// target is where a repository's pull requests are.
type target struct {
	kind       rollout.ForgeType
	address    string // as in a browser
	repository string
}

var scpForm = regexp.MustCompile(`^(?:[^@/]+@)?([^:/]+):(.+)$`)

// remoteOf splits a repository's URL. The host is "" for a local path.
func remoteOf(remote string) (scheme, host, path string) {
	if u, err := url.Parse(remote); err == nil && strings.Contains(remote, "://") {
		scheme, host, path = u.Scheme, u.Host, u.Path
	} else if m := scpForm.FindStringSubmatch(remote); m != nil {
		scheme, host, path = "ssh", m[1], m[2]
	}
	if scheme != "http" && scheme != "https" {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name // the port is that of ssh
		}
		// Where the big ones serve ssh on port 443.
		switch host {
		case "ssh.github.com":
			host = "github.com"
		case "altssh.gitlab.com":
			host = "gitlab.com"
		}
	}
	return scheme, host, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// resolve fills in what the configuration leaves out. Credentials go only to
// the host that Git itself uses, or to the address that trusted names: whoever
// may edit the configuration must not be able to send them elsewhere.
func resolve(config rollout.Forge, remote, trusted string) (target, error) {
	scheme, host, path := remoteOf(remote)
	t := target{kind: config.Type, address: config.URL, repository: config.Repository}
	if t.address == "" {
		if host == "" {
			return target{}, fmt.Errorf("forge.url: is missing, and %s is not on a forge; write the forge's address: https://git.example.com", remote)
		}
		t.address = "https://" + host
		if scheme == "http" {
			t.address = "http://" + host
		}
	}
	u, err := url.Parse(t.address)
	if err != nil {
		return target{}, fmt.Errorf("forge.url: %q is not an address", t.address)
	}
	sameHost := u.Host == host || (scheme == "ssh" && u.Hostname() == host)
	safer := u.Scheme == "https" || scheme == "http"
	if t.address != strings.TrimRight(trusted, "/") && (!sameHost || !safer) {
		return target{}, fmt.Errorf("forge.url: %s is not where Git reads from (%s), and the token is for that; if it is meant to go there, set GITROLLOUT_FORGE_URL=%s", t.address, remote, t.address)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return target{}, fmt.Errorf("forge.url: refusing to send a token over plain http to %s; use https", u.Host)
	}
	if t.kind == "" {
		if t.kind = kindOf(u.Hostname()); t.kind == "" {
			return target{}, fmt.Errorf("forge.type: is missing, and %s does not tell; write github, gitlab or gitea", u.Host)
		}
	}
	if t.repository == "" {
		inside := strings.Trim(u.Path, "/") + "/"
		if t.repository = path; scheme != "ssh" && inside != "/" {
			t.repository = strings.TrimPrefix(path, inside)
		}
	}
	if n := strings.Count(t.repository, "/"); t.repository == "" || n < 1 || (t.kind != rollout.GitLab && n != 1) {
		return target{}, fmt.Errorf("forge.repository: %q is not a repository's path; write owner/name", t.repository)
	}
	return t, nil
}

func kindOf(host string) rollout.ForgeType {
	if strings.HasSuffix(host, ".ghe.com") {
		return rollout.GitHub
	}
	for kind, f := range forges {
		if slices.Contains(f.hosts, host) {
			return kind
		}
	}
	return ""
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
