package rollout

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Forge configures pull requests. Defaults are derived from the repository's URL.
type Forge struct {
	// Type, if empty, follows from the host github.com, gitlab.com, gitea.com or codeberg.org.
	Type ForgeType `json:"type" oneOf:"github gitlab gitea" fix:"use gitea for Forgejo, which has the same API"`
	// URL is the forge's address in a browser, without final slash.
	URL string `json:"url" like:"url"`
	// Repository is owner/name, or group/subgroup/name on GitLab.
	Repository string   `json:"repository"`
	Labels     []string `json:"labels" max:"10" fix:"leave some out"`
	// Reviewers are users, or teams as org/team.
	Reviewers []string `json:"reviewers" max:"10" fix:"leave some out"`
}

// ForgeType is a kind of forge.
type ForgeType string

const (
	GitHub ForgeType = "github"
	GitLab ForgeType = "gitlab"
	Gitea  ForgeType = "gitea"
)

// Equal compares configurations.
func (f *Forge) Equal(o *Forge) bool { return equality.DeepEqual(f, o) }

var (
	repositoryPath = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`)
	reviewerName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?$`)
	labelText      = regexp.MustCompile(`^[^,\x00-\x1f]{1,50}$`)
)

func (f *Forge) check(file string) error {
	if f == nil {
		return nil
	}
	at := place{file, "forge"}
	f.URL = strings.TrimRight(f.URL, "/")
	if f.URL != "" {
		u, err := url.Parse(f.URL)
		switch {
		case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
			return at.invalid("url", "write the forge's address as in a browser: https://git.example.com",
				"%q is not an address", Redact(f.URL))
		case u.User != nil:
			return at.invalid("url", "leave them out: credentials come from the environment", "%q has credentials",
				Redact(f.URL))
		case u.RawQuery != "" || u.Fragment != "":
			return at.invalid("url", "write https://git.example.com", "%q has a query or a fragment", f.URL)
		}
	}
	upwards := strings.Contains("/"+f.Repository+"/", "/../")
	if f.Repository != "" && (upwards || !repositoryPath.MatchString(f.Repository)) {
		return at.invalid("repository", "write owner/name", "%q is not a repository's path", f.Repository)
	}
	for _, list := range []struct {
		field, fix string
		names      []string
		allowed    *regexp.Regexp
	}{
		{"labels", "use up to 50 characters without commas", f.Labels, labelText},
		{"reviewers", "write the name of a user, or org/team", f.Reviewers, reviewerName},
	} {
		for i, name := range list.names {
			if !list.allowed.MatchString(name) || strings.TrimSpace(name) != name {
				return at.invalid(fmt.Sprintf("%s[%d]", list.field, i), list.fix, "%q is not valid", name)
			}
		}
	}
	return nil
}

// Redact replaces the credentials of an address with ***. It keeps other text.
func Redact(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return text
	}
	authority, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		authority = "***" + authority[at:]
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}
