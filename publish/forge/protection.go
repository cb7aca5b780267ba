package forge

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// IsProtected reports whether the forge protects a branch, which must exist.
func IsProtected(ctx context.Context, o Options, config rollout.Forge, branch string) (bool, error) {
	h, err := o.connect(config)
	if err != nil {
		return false, err
	}
	return h.isProtected(ctx, branch)
}

// AsksOwners reports whether a merge needs a review by code owners. It fails if the forge hides this setting from the
// token's user.
func AsksOwners(ctx context.Context, o Options, config rollout.Forge, branch string) (bool, error) {
	h, err := o.connect(config)
	if err != nil {
		return false, err
	}
	return h.asksOwners(ctx, branch)
}

// CodeOwners returns the possible paths of the CODEOWNERS file.
func CodeOwners() []string {
	return []string{"CODEOWNERS", "docs/CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS",
		".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"}
}

var errHidden = errors.New("the branch is protected, and the forge tells only administrators whether code owners " +
	"have to agree: set GITROLLOUT_FORGE_TOKEN to an administrator's token")

// asksOwners implements guard. All users may read rulesets, but only administrators may read branch protection.
func (g *gitHubRepository) asksOwners(ctx context.Context, branch string) (bool, error) {
	type rule struct {
		Type       string `json:"type"`
		Parameters struct {
			Owners bool `json:"require_code_owner_review"`
		} `json:"parameters"`
	}
	rules, err := pages[rule](ctx, g.api, g.path+"/rules/branches/"+branch, "")
	if slices.ContainsFunc(rules, func(r rule) bool { return r.Type == "pull_request" && r.Parameters.Owners }) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var classic struct {
		Reviews struct {
			Owners bool `json:"require_code_owner_reviews"`
		} `json:"required_pull_request_reviews"`
	}
	err = g.call(ctx, http.MethodGet, g.path+"/branches/"+branch+"/protection", nil, &classic)
	if refused := new(call.Error); errors.As(err, &refused) &&
		(refused.Status == http.StatusNotFound || refused.Status == http.StatusForbidden) {
		if strings.Contains(refused.Message, "Branch not protected") { // a ruleset may still protect the branch
			return false, nil
		}
		protected, err := g.isProtected(ctx, branch)
		if protected && err == nil {
			err = errHidden
		}
		return false, err
	}
	return classic.Reviews.Owners, err
}

// asksOwners implements guard. One matching pattern that requires code owners suffices.
func (g *gitLabProject) asksOwners(ctx context.Context, branch string) (bool, error) {
	type pattern struct {
		Name   string `json:"name"`
		Owners bool   `json:"code_owner_approval_required"`
	}
	patterns, err := pages[pattern](ctx, g.api, g.path+"/protected_branches", "")
	for _, p := range patterns {
		is, failed := regexp.MatchString("^"+strings.ReplaceAll(regexp.QuoteMeta(p.Name), `\*`, ".*")+"$", branch)
		if p.Owners && is && failed == nil {
			return true, nil
		}
	}
	return false, err
}

// asksOwners implements guard. Gitea always requests the owners' reviews. The branch's rule decides whether a merge
// needs them.
func (g *giteaRepository) asksOwners(ctx context.Context, branch string) (bool, error) {
	var answer struct {
		Protected bool   `json:"protected"`
		Rule      string `json:"effective_branch_protection_name"` // "" unless an administrator
	}
	if err := g.call(ctx, http.MethodGet, g.path+"/branches/"+branch, nil, &answer); err != nil || !answer.Protected {
		return false, err
	}
	if answer.Rule == "" {
		return false, errHidden
	}
	var rule struct {
		Waits bool `json:"block_on_official_review_requests"`
	}
	err := g.call(ctx, http.MethodGet, g.path+"/branch_protections/"+answer.Rule, nil, &rule)
	return rule.Waits, err
}
