package forge

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

type target struct {
	kind       kind
	address    string // in a browser
	repository string
}

var scpForm = regexp.MustCompile(`^(?:[^@/]+@)?([^:/]+):(.+)$`)

func remoteOf(remote string) (scheme, host, path string) {
	if u, err := url.Parse(remote); err == nil && strings.Contains(remote, "://") {
		scheme, host, path = u.Scheme, u.Host, u.Path
	} else if m := scpForm.FindStringSubmatch(remote); m != nil {
		scheme, host, path = "ssh", m[1], m[2]
	}
	if scheme != "http" && scheme != "https" {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name // without the SSH port
		}
		// These hosts serve the main hosts' SSH on port 443.
		switch host {
		case "ssh.github.com":
			host = "github.com"
		case "altssh.gitlab.com":
			host = "gitlab.com"
		}
	}
	return scheme, host, strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// resolve completes a configuration. It refuses an address that is neither trusted nor on the Git repository's host,
// because the address gets the token.
func (t table) resolve(config rollout.Forge, remote, trusted string) (target, error) {
	scheme, host, path := remoteOf(remote)
	address := config.URL
	if address == "" {
		if host == "" {
			return target{}, fmt.Errorf("forge.url: is missing, and %s does not name the forge's host; "+
				"write the forge's address: https://git.example.com", remote)
		}
		address = "https://" + host
		if scheme == "http" {
			address = "http://" + host
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		return target{}, fmt.Errorf("forge.url: %q is not an address", address)
	}
	sameHost := u.Host == host || (scheme == "ssh" && u.Hostname() == host)
	safer := u.Scheme == "https" || scheme == "http"
	if address != strings.TrimRight(trusted, "/") && (!sameHost || !safer) {
		return target{}, fmt.Errorf("forge.url: %s differs from the server of the Git repository (%s), which "+
			"the token is for; to send the token to this address, set GITROLLOUT_FORGE_URL=%s", address, remote, address)
	}
	if u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return target{}, fmt.Errorf("forge.url: refusing to send a token over plain http to %s; use https", u.Host)
	}
	k, known := t.named(config.Type, u.Hostname())
	if !known {
		return target{}, fmt.Errorf("forge.type: is missing, but %s is not a known forge; write %s", u.Host, t.names())
	}
	repository := config.Repository
	if repository == "" {
		inside := strings.Trim(u.Path, "/") + "/"
		if repository = path; scheme != "ssh" && inside != "/" {
			repository = strings.TrimPrefix(path, inside)
		}
	}
	if n := strings.Count(repository, "/"); n < 1 || n > 1 && !k.groups {
		return target{}, fmt.Errorf("forge.repository: %q is not a repository's path; write owner/name", repository)
	}
	return target{kind: k, address: address, repository: repository}, nil
}

// Pages has the URLs of a repository's web pages. For an unknown forge, all are "".
type Pages struct {
	home   string
	kind   kind
	opened bool
}

// PagesOf returns a repository's pages. For a known public host, config may be nil. The host need not be trusted,
// because no token is sent.
func PagesOf(config *rollout.Forge, remote string) Pages { return forges.pages(config, remote) }

func (t table) pages(config *rollout.Forge, remote string) Pages {
	c := *cmp.Or(config, &rollout.Forge{})
	target, err := t.resolve(c, remote, c.URL)
	if err != nil {
		return Pages{}
	}
	return Pages{home: target.address + "/" + target.repository, kind: target.kind, opened: config != nil}
}

// Commit returns the URL of a commit's page.
func (p Pages) Commit(id string) string {
	if p.home == "" {
		return ""
	}
	return p.home + p.kind.commitPage(id)
}

// Branch returns the URL of a branch's files.
func (p Pages) Branch(name string) string {
	if p.home == "" {
		return ""
	}
	// Forges expect slashes that are not escaped.
	return p.home + p.kind.branchPage(strings.ReplaceAll(url.PathEscape(name), "%2F", "/"))
}

// Pull returns the URL of a page, such as a search, that leads to a proposal's open pull request. It returns "" if no
// forge is configured.
func (p Pages) Pull(base, branch string) string {
	if p.home == "" || !p.opened {
		return ""
	}
	return p.home + p.kind.pullPage(base, branch)
}

func below(prefix string) func(string) string {
	return func(name string) string { return prefix + name }
}

var pullRef = regexp.MustCompile(`^refs/pull/([0-9]+)/`)

// PullOf reads the forge and the number of the pull request from a CI job's environment.
func PullOf(env func(string) string) (rollout.Forge, int, error) {
	if iid := env("CI_MERGE_REQUEST_IID"); iid != "" {
		number, err := strconv.Atoi(iid)
		return rollout.Forge{
			Type: rollout.GitLab, URL: env("CI_SERVER_URL"), Repository: env("CI_MERGE_REQUEST_PROJECT_PATH"),
		}, number, err
	}
	m := pullRef.FindStringSubmatch(env("GITHUB_REF"))
	if m == nil {
		return rollout.Forge{}, 0, errors.New("this is not a CI job of a pull request, " +
			"which has GITHUB_REF=refs/pull/… or CI_MERGE_REQUEST_IID")
	}
	number, err := strconv.Atoi(m[1])
	return RepositoryOf(env), number, err
}

// RepositoryOf returns the repository of a CI job, or the zero Forge.
func RepositoryOf(env func(string) string) rollout.Forge {
	f := rollout.Forge{
		Type: rollout.GitHub, URL: strings.TrimSuffix(env("GITHUB_SERVER_URL"), "/"), Repository: env("GITHUB_REPOSITORY"),
	}
	switch {
	case env("CI_PROJECT_PATH") != "":
		return rollout.Forge{Type: rollout.GitLab, URL: env("CI_SERVER_URL"), Repository: env("CI_PROJECT_PATH")}
	case f.Repository == "":
		return rollout.Forge{}
	case env("GITEA_ACTIONS") != "" || env("FORGEJO_ACTIONS") != "":
		f.Type = rollout.Gitea
	}
	return f
}
