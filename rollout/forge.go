package rollout

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Forge is the forge part of a Config: where pull requests are opened for
// proposals. What is empty is inferred from the repository's URL.
type Forge struct {
	Type       ForgeType // "" for the host's own: github.com, gitlab.com, gitea.com, codeberg.org
	URL        string    // the forge's address as in a browser, without a slash at the end
	Repository string    // owner/name, or group/subgroup/name on GitLab
	Labels     []string  // for each pull request; at most 10
	Reviewers  []string  // names of users, or org/team; at most 10
}

// ForgeType is a kind of forge.
type ForgeType string

// The forges that are known. Forgejo speaks Gitea's API.
const (
	GitHub ForgeType = "github"
	GitLab ForgeType = "gitlab"
	Gitea  ForgeType = "gitea"
)

// ForgeTypes lists all forges.
func ForgeTypes() []ForgeType { return []ForgeType{GitHub, GitLab, Gitea} }

// Equal reports whether two configurations ask for the same.
func (f *Forge) Equal(o *Forge) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.Type == o.Type && f.URL == o.URL && f.Repository == o.Repository &&
		slices.Equal(f.Labels, o.Labels) && slices.Equal(f.Reviewers, o.Reviewers)
}

// maxNames bounds the labels and the reviewers.
const maxNames = 10

// forgeFile is the section's form in the file.
type forgeFile struct {
	Type       string   `json:"type"`
	URL        string   `json:"url"`
	Repository string   `json:"repository"`
	Labels     []string `json:"labels"`
	Reviewers  []string `json:"reviewers"`
}

var (
	repositoryPath = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`)
	reviewerName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?$`)
	labelText      = regexp.MustCompile(`^[^,\x00-\x1f]{1,50}$`)
)

func parseForge(file string, raw *forgeFile) (*Forge, error) {
	if raw == nil {
		return nil, nil
	}
	invalid := func(field, fix, format string, args ...any) (*Forge, error) {
		return nil, &InvalidError{File: file, Field: "forge." + field, Msg: fmt.Sprintf(format, args...), Fix: fix}
	}
	f := &Forge{Type: ForgeType(raw.Type), URL: strings.TrimRight(raw.URL, "/"), Repository: raw.Repository, Labels: raw.Labels, Reviewers: raw.Reviewers}
	if f.Type != "" && !slices.Contains(ForgeTypes(), f.Type) {
		fix := "use github, gitlab or gitea"
		if raw.Type == "forgejo" {
			fix = "use gitea: Forgejo has the same API"
		}
		return invalid("type", fix, "%q is not a forge", raw.Type)
	}
	if f.URL != "" {
		u, err := url.Parse(f.URL)
		switch {
		case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
			return invalid("url", "write the forge's address as in a browser: https://git.example.com", "%q is not an address", redact(f.URL))
		case u.User != nil:
			return invalid("url", "leave them out: credentials come from the environment", "%q has credentials", redact(f.URL))
		case u.RawQuery != "" || u.Fragment != "":
			return invalid("url", "write https://git.example.com", "%q has a query or a fragment", f.URL)
		}
	}
	if f.Repository != "" && (!repositoryPath.MatchString(f.Repository) || strings.Contains("/"+f.Repository+"/", "/../")) {
		return invalid("repository", "write owner/name", "%q is not a repository's path", f.Repository)
	}
	for _, list := range []struct {
		field, fix string
		names      []string
		allowed    *regexp.Regexp
	}{
		{"labels", "use up to 50 characters without commas", f.Labels, labelText},
		{"reviewers", "write the name of a user, or org/team", f.Reviewers, reviewerName},
	} {
		if len(list.names) > maxNames {
			return invalid(list.field, "leave some out", "has %d entries, at most %d are allowed", len(list.names), maxNames)
		}
		for i, name := range list.names {
			if !list.allowed.MatchString(name) || strings.TrimSpace(name) != name {
				return invalid(fmt.Sprintf("%s[%d]", list.field, i), list.fix, "%q does not name one", name)
			}
		}
	}
	return f, nil
}

// redact replaces the credentials in a URL, which need not be a valid one.
func redact(text string) string {
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
