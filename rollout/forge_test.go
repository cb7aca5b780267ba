package rollout_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestParseForge(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want *rollout.Forge
	}{
		"none":  {"", nil},
		"empty": {"forge: {}\n", &rollout.Forge{}},
		"all set": {
			"forge: {type: gitlab, url: \"https://git.example.com/gitlab/\", repository: a/b/c, labels: [release, \"needs: review\"], " +
				"reviewers: [ann, org/team]}\n",
			&rollout.Forge{Type: rollout.GitLab, URL: "https://git.example.com/gitlab", Repository: "a/b/c",
				Labels:    []string{"release", "needs: review"},
				Reviewers: []string{"ann", "org/team"}},
		},
	} {
		got := parsed(t, "apps: [{path: a}]\n"+tt.text).Forge
		compare.CheckNamed(t, name, tt.want, got)
		if !got.Equal(tt.want) || got.Equal(&rollout.Forge{Type: rollout.GitHub}) {
			t.Errorf("%s: Equal is wrong", name)
		}
	}
}

func TestParseForgeRefuses(t *testing.T) {
	const noForge = " is not one of github, gitlab, gitea; use gitea for Forgejo, which has the same API"
	const noAddress = " is not an address; write the forge's address as in a browser: https://git.example.com"
	for name, tt := range map[string]struct{ text, want string }{
		"unknown field": {"token: x", ".token: is not a known field; use one of labels, repository, reviewers, type, url"},
		"type":          {"type: bitbucket", `.type: "bitbucket"` + noForge},
		"forgejo":       {"type: forgejo", `.type: "forgejo"` + noForge},
		"url":           {"url: git.example.com", `.url: "git.example.com"` + noAddress},
		"ssh":           {"url: ssh://git@example.com", `.url: "ssh://***@example.com"` + noAddress},
		"credentials": {"url: https://me:secret@example.com/x",
			`.url: "https://***@example.com/x" has credentials; leave them out: credentials come from the environment`},
		"query": {"url: \"https://example.com/?a=b\"",
			`.url: "https://example.com/?a=b" has a query or a fragment; write https://git.example.com`},
		"repository": {"repository: shop", `.repository: "shop" is not a repository's path; write owner/name`},
		"dots":       {"repository: a/../b", `.repository: "a/../b" is not a repository's path; write owner/name`},
		"label":      {"labels: [\"a,b\"]", `.labels[0]: "a,b" is not valid; use up to 50 characters without commas`},
		"reviewer":   {"reviewers: [ok, \"@ann\"]", `.reviewers[1]: "@ann" is not valid; write the name of a user, or org/team`},
		"many":       {"labels: [a, b, c, d, e, f, g, h, i, j, k]", ".labels: has 11 entries, at most 10 are allowed; leave some out"},
	} {
		checkRefused(t, name, "apps: [{path: a}]\nforge: {"+tt.text+"}\n", "forge"+tt.want)
	}
}

// TestRedact checks that redact replaces the credentials of an address, and keeps all other text.
func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"https://user:pass@host/path@x": "https://***@host/path@x", "https://@host": "https://***@host", "https://host/a": "https://host/a",
		"a@b": "a@b", "https://u:p@ss@host": "https://***@host",
	} {
		compare.CheckNamed(t, text, want, rollout.Redact(text))
	}
}
