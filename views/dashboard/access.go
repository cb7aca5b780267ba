package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

// Access is the file with users' rights. Each check reads the file, so changes take effect at once.
type Access struct{ File string }

// rules is the content of the file of rights (docs/dashboard.md).
type rules struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	People     []personRule `json:"people"`
	Groups     []groupRule  `json:"groups"`
}

type right struct {
	Apps  []string       `json:"apps"`  // patterns; * matches any characters
	Verbs []rollout.Verb `json:"verbs"` // see propose.Verbs
}

type personRule struct {
	Name  string `json:"name"`
	Email string `json:"email"`
	Token string `json:"token"`
	right
}

type groupRule struct {
	Claim string `json:"claim"`
	Value string `json:"value"`
	right
}

const tokenPrefix = "sha256:"

// Check returns an error for an invalid file.
func (a *Access) Check() error {
	_, err := a.read()
	return err
}

// read refuses unknown fields. An error is a rollout.InvalidError or comes from the file system.
func (a *Access) read() (*rules, error) {
	data, err := os.ReadFile(a.File)
	if err != nil {
		return nil, fmt.Errorf("the file of rights: %w", err)
	}
	var r rules
	if err := yaml.UnmarshalStrict(data, &r); err != nil {
		return nil, rollout.Invalidf(a.File, "", "cannot be read: %v", err)
	}
	if err := rollout.CheckVersion(a.File, r.Kind, r.APIVersion); err != nil {
		return nil, err
	}
	if r.Kind != "DashboardAccess" {
		return nil, rollout.Invalidf(a.File, "kind", "%q is not DashboardAccess", r.Kind)
	}
	for i, p := range r.People {
		field := fmt.Sprintf("people[%d]", i)
		if !isAuthor(p.Name, p.Email) {
			return nil, rollout.Invalidf(a.File, field, "needs a name and an email that are valid in a commit: %q, %q", p.Name,
				p.Email)
		}
		if digest, ok := strings.CutPrefix(p.Token, tokenPrefix); p.Token != "" &&
			(!ok || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "") {
			return nil, &rollout.InvalidError{File: a.File, Field: field + ".token", Msg: "is not the digest of a token",
				Fix: "create a token and its digest with: gitrollout dashboard token"}
		}
		if err := p.check(a.File, field); err != nil {
			return nil, err
		}
	}
	for i, g := range r.Groups {
		field := fmt.Sprintf("groups[%d]", i)
		if g.Claim == "" || g.Value == "" {
			return nil, rollout.Invalidf(a.File, field, "needs a claim and its value")
		}
		if err := g.check(a.File, field); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

func isAuthor(name, email string) bool {
	return name != "" && email != "" && !strings.ContainsAny(name+email, "<>\n\r\x00")
}

func (r right) check(file, field string) error {
	for i, glob := range r.Apps {
		if _, err := path.Match(glob, "app"); err != nil || glob == "" {
			return rollout.Invalidf(file, fmt.Sprintf("%s.apps[%d]", field, i), "%q is not a pattern", glob)
		}
	}
	for i, verb := range r.Verbs {
		if !slices.Contains(propose.Verbs(), verb) {
			known := rollout.Mapped(propose.Verbs(), func(v rollout.Verb) string { return string(v) })
			return rollout.Invalidf(file, fmt.Sprintf("%s.verbs[%d]", field, i), "%q is not supported; supported verbs: %s",
				verb, strings.Join(known, ", "))
		}
	}
	return nil
}

func (r right) on(app string) []rollout.Verb {
	for _, glob := range r.Apps {
		if ok, err := path.Match(glob, app); err == nil && ok {
			return r.Verbs
		}
	}
	return nil
}

// NewToken returns a sign-in token of 160 random bits, and its digest.
func NewToken() (token, digest string) {
	token = "gitrollout_" + rand.Text() + rand.Text()[:6]
	return token, digestOf(token)
}

// digestOf returns a token's SHA-256. Long random tokens need no slow password hash.
func digestOf(token string) string { return tokenPrefix + rollout.Digest([]byte(token), sha256.Size) }

// Person is a signed-in user and commit author.
type Person struct {
	Name   string   `json:"name"`
	Email  string   `json:"email"`
	Token  string   `json:"token,omitempty"`  // digest of the token; "" with OIDC
	Claims []string `json:"claims,omitempty"` // OIDC claims in rules, as "claim=value"
}

func (r *rules) byToken(token string) (found Person, is bool) {
	digest := digestOf(token)
	for _, p := range r.People {
		if subtle.ConstantTimeCompare([]byte(p.Token), []byte(digest)) == 1 {
			found, is = Person{Name: p.Name, Email: p.Email, Token: digest}, true
		}
	}
	return found, is
}

// may returns a user's verbs for an app. A token that is no longer in the file has no verbs.
func (r *rules) may(p Person, app string) []rollout.Verb {
	var granted []rollout.Verb
	for _, rule := range r.People {
		if strings.EqualFold(rule.Email, p.Email) && (p.Token == "" || rule.Token == p.Token) {
			granted = append(granted, rule.on(app)...)
		}
	}
	for _, rule := range r.Groups {
		if p.Token == "" && slices.Contains(p.Claims, rule.Claim+"="+rule.Value) {
			granted = append(granted, rule.on(app)...)
		}
	}
	return slices.DeleteFunc(propose.Verbs(), func(verb rollout.Verb) bool { return !slices.Contains(granted, verb) })
}

func (r *rules) known(claims map[string]any) (found []string) {
	for _, rule := range r.Groups {
		values, ok := claims[rule.Claim].([]any)
		if !ok {
			values = []any{claims[rule.Claim]}
		}
		if entry := rule.Claim + "=" + rule.Value; slices.Contains(values, any(rule.Value)) &&
			!slices.Contains(found, entry) {
			found = append(found, entry)
		}
	}
	return found
}
