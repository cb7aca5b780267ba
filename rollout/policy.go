package rollout

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Policy has cluster operators' rules for apps. A push to the users' branch cannot change these rules.
type Policy struct {
	File      string
	Unmatched string // "deny" (default) or PolicyAllow
	Projects  []Project
}

// PolicyAllow is a value of Policy.Unmatched. It permits apps without a project.
const PolicyAllow = "allow"

// Project has rules for some apps, in addition to the configuration's rules.
type Project struct {
	Name             string       `json:"name" needs:"write a name, which messages show" is:"label"`
	Apps             []string     `json:"apps" needs:"name its apps: [shop, shop-*]" like:"glob"`
	Sources          []string     `json:"sources" max:"100" fix:"use wildcards, such as apps/shop/**"`
	Namespaces       []string     `json:"namespaces" needs:"name where its objects may be: [shop, shop-*]" max:"100" is:"namespaces" fix:"use wildcards, such as shop-*"`
	ClusterResources []string     `json:"clusterResources" max:"100" is:"kinds"`
	Resources        KindRules    `json:"resources"`
	ServiceAccount   string       `json:"serviceAccount" is:"account"`
	Rollouts         RolloutRules `json:"rollouts"`
	Promoters        string       `json:"promoters"` // an allowed_signers file; "": the flag --promoters
	Quota            Quota        `json:"quota"`
}

// KindRules lists kinds: "group/Kind"; "Kind" or "/Kind" in the core group. "*" and "?" are wildcards.
type KindRules struct {
	Allow []string `json:"allow" max:"200" is:"kinds"` // nil: all kinds
	Deny  []string `json:"deny" max:"200" is:"kinds"`  // wins over Allow
}

// RolloutRules are requirements on releases.
type RolloutRules struct {
	Required       bool `json:"required"` // objects that run pods need a Rollout, except objects of the group batch
	MaxFirstWeight *int `json:"maxFirstWeight" min:"1" max:"100" fix:"give a percentage of 1 to 100"`
	EvidenceRules
	Forbid   []string      `json:"forbid" oneOf:"promoteFull fastRollbackOff"`
	ByAuthor []AuthorRules `json:"byAuthor" max:"100" fix:"list several authors in one rule"`
}

// EvidenceRules are requirements on the steps that run before all users have the new version.
type EvidenceRules struct {
	RequireAnalysis bool          `json:"requireAnalysis"`
	MinDuration     time.Duration `json:"minDuration"` // least total of timed pauses and experiments
}

// AuthorRules are further requirements on the commits of some authors. All matching rules apply.
type AuthorRules struct {
	Authors []string `json:"authors" needs:"name authors: ['*[bot]']" max:"100" is:"author"`
	EvidenceRules
	MayPromote bool `json:"mayPromote" default:"true"`
}

// The values of RolloutRules.Forbid.
const (
	ForbidPromoteFull     = "promoteFull"     // promotions that skip or shorten timed pauses, analyses or experiments
	ForbidFastRollbackOff = "fastRollbackOff" // "rollbackWindow: {revisions: 0}"
)

// Quota bounds each app's objects. Nil means no bound.
type Quota struct {
	Objects     *int `json:"objects"`
	Deployments *int `json:"deployments"`
}

type policyFile struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"` // Policy
	Unmatched  string    `json:"unmatched" oneOf:"deny allow" default:"deny"`
	Projects   []Project `json:"projects" max:"1000" needs:"name a project and its apps"`
}

// ParsePolicy reads a policy strictly.
func ParsePolicy(file string, data []byte) (*Policy, error) {
	raw, err := decode[policyFile](file, "Policy", data)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i, p := range raw.Projects {
		at := fmt.Sprintf("projects[%d].", i)
		if names[p.Name] {
			return nil, Invalidf(file, at+"name", "%q is also the name of another project", p.Name).WithFix("use another name")
		}
		names[p.Name] = true
		if err := checkGlobs(file, at+"apps", p.Apps); err != nil {
			return nil, err
		}
		for n, pattern := range p.Sources {
			if !isSource(pattern) {
				return nil, Invalidf(file, fmt.Sprintf("%ssources[%d]", at, n), "%q is not a pattern of files", pattern).
					WithFix("write a path from the repository's root, with * in a name and ** for any folders: apps/shop/**")
			}
		}
		if p.Resources.Allow != nil && len(p.Resources.Allow) == 0 {
			return nil, Invalidf(file, at+"resources.allow", "is empty, so nothing would be allowed").
				WithFix("list kinds, or leave it out to allow all kinds not in deny")
		}
	}
	return &Policy{File: file, Unmatched: raw.Unmatched, Projects: raw.Projects}, nil
}

func isSource(pattern string) bool {
	for segment := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(segment, ""); err != nil || segment == "" || segment == "." || segment == ".." ||
			segment != "**" && strings.Contains(segment, "**") {
			return false
		}
	}
	return true
}

// ProjectOf returns the app's project, or nil without a policy. For an app in no project, it returns nil if Unmatched
// is PolicyAllow, else an InvalidError (HeldPolicy). For an app in two projects, it also returns an InvalidError.
func (p *Policy) ProjectOf(app string) (found *Project, err error) {
	if p == nil {
		return nil, nil
	}
	for i := range p.Projects {
		switch project := &p.Projects[i]; {
		case !concerns(project.Apps, app):
		case found != nil:
			return nil, &InvalidError{Reason: HeldPolicy, File: p.File, Field: fmt.Sprintf("projects[%d].apps", i),
				Msg: fmt.Sprintf("app %s is in project %s and in project %s", app, found.Name, project.Name),
				Fix: "name it in one project"}
		default:
			found = project
		}
	}
	if found == nil && p.Unmatched != PolicyAllow {
		return nil, &InvalidError{Reason: HeldPolicy, File: p.File, Field: "projects",
			Msg: fmt.Sprintf("app %s is in no project", app), Fix: "name it in one project, or write unmatched: allow"}
	}
	return found, nil
}

// Forbids reports whether the project, perhaps nil, forbids a value of RolloutRules.Forbid.
func (p *Project) Forbids(what string) bool {
	return p != nil && slices.Contains(p.Rollouts.Forbid, what)
}

// Has reports whether a rule is for an author: "Name <address>", or a signer. In patterns, only "*" is special. Case
// does not count.
func (r AuthorRules) Has(author string) bool {
	name, address, _ := strings.Cut(strings.TrimSuffix(author, ">"), " <")
	return slices.ContainsFunc(r.Authors, func(pattern string) bool {
		is := regexp.MustCompile(`(?is)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
		return is.MatchString(author) || is.MatchString(name) || is.MatchString(address)
	})
}

// UnknownAuthor is the author of a commit that is too old to read. All AuthorRules apply to such commits.
const UnknownAuthor = "unknown"

// ByAuthor is the field in messages about AuthorRules.
const ByAuthor = "rollouts.byAuthor"

// Bars returns why the project, perhaps nil, ignores an author's promotions, or "". The second result reports whether
// any rule bars any author.
func (p *Project) Bars(author string) (why string, some bool) {
	for i := 0; p != nil && i < len(p.Rollouts.ByAuthor); i++ {
		rule := p.Rollouts.ByAuthor[i]
		some = some || !rule.MayPromote
		if why == "" && !rule.MayPromote && rule.Has(author) {
			why = fmt.Sprintf("project %s, rule %s[%d].mayPromote: %s committed this promotion, and may not promote; let a "+
				"person promote again, or remove the file", p.Name, ByAuthor, i, author)
		}
	}
	return why, some
}

// Bounded returns the app with the project's bounds in the fields that MayWriteIn and MayHave read.
func (p *Project) Bounded(app App) App {
	app.Namespace, app.Namespaces = "", strings.Join(p.Namespaces, " ")
	app.ClusterResources = strings.ReplaceAll(" "+strings.Join(p.ClusterResources, " "), " /", " ")
	return app
}

// HasSource reports whether Sources allows a file. "*" and "?" match within a name, and "**" matches any folders.
func (p *Project) HasSource(file string) bool {
	return len(p.Sources) == 0 || slices.ContainsFunc(p.Sources, func(pattern string) bool {
		return matchesFolders(strings.Split(pattern, "/"), strings.Split(file, "/"))
	})
}

// matchesFolders takes len(pattern)*len(names) steps, even for many "**".
func matchesFolders(pattern, names []string) bool {
	reach := make([]bool, len(names)+1) // reach[i]: the pattern so far matches the first i names
	reach[0] = true
	for _, segment := range pattern {
		next := make([]bool, len(names)+1)
		for i := range next {
			switch {
			case segment == "**":
				next[i] = reach[i] || i > 0 && next[i-1]
			case i > 0 && reach[i-1]:
				next[i], _ = path.Match(segment, names[i-1])
			}
		}
		reach = next
	}
	return reach[len(names)]
}

// IsKind reports whether a pattern of KindRules matches the object. Case does not count; "*" matches any kind.
func (r Ref) IsKind(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		group, kind, has := strings.Cut(strings.ToLower(pattern), "/")
		if !has {
			group, kind = "", group
		}
		inGroup, _ := path.Match(group, strings.ToLower(r.Group))
		isKind, _ := path.Match(kind, strings.ToLower(r.Kind))
		return pattern == "*" || inGroup && isKind
	})
}
