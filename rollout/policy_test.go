package rollout_test

import (
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const policyHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\n"

// project returns the YAML of a policy's projects: one project, with further fields.
func project(more string) string {
	return "projects:\n- {name: shop, apps: [shop, shop-*], namespaces: [shop]" + more + "}\n"
}

// TestParsePolicy checks the error for each mistake in a policy, with file, field, value and fix. An undetected mistake could permit too
// much.
func TestParsePolicy(t *testing.T) {
	const (
		noFiles = " is not a pattern of files; write a path from the repository's root, with * in a name and ** for any folders: apps/shop/**"
		noKind  = " is not a kind; write group/Kind, or /Kind for the core group"
	)
	for name, tt := range map[string]struct{ text, want string }{
		"no project": {"", "projects: is missing; name a project and its apps"},
		"no apps":    {"projects: [{name: a, namespaces: [a]}]\n", "projects[0].apps: is missing; name its apps: [shop, shop-*]"},
		"no namespaces": {"projects: [{name: a, apps: [a]}]\n",
			"projects[0].namespaces: is missing; name where its objects may be: [shop, shop-*]"},
		"no name":          {"projects: [{apps: [a], namespaces: [a]}]\n", "projects[0].name: is missing; write a name, which messages show"},
		"an unknown field": {project(", namespace: a"), "projects[0].namespace: is not a known field; did you mean namespaces?"},
		"an unknown rule": {project(", rollouts: {maxWeight: 3}"), "projects[0].rollouts.maxWeight: is not a known field; " +
			"use one of byAuthor, forbid, maxFirstWeight, minDuration, requireAnalysis, required"},
		"the name twice": {"projects: [{name: a, apps: [a], namespaces: [a]}, {name: a, apps: [b], namespaces: [b]}]\n",
			`projects[1].name: "a" is also the name of another project; use another name`},
		"apps": {"projects: [{name: a, apps: ['['], namespaces: [a]}]\n",
			`projects[0].apps[0]: "[" is not a pattern for app names; name an app, with * ? [] for parts of the name: shop-*`},
		"sources with a slash":   {project(", sources: [/apps]"), `projects[0].sources[0]: "/apps"` + noFiles},
		"sources with a way up":  {project(", sources: [apps/../**]"), `projects[0].sources[0]: "apps/../**"` + noFiles},
		"a pattern that is none": {project(", sources: ['apps/[']"), `projects[0].sources[0]: "apps/["` + noFiles},
		"sources with a dot":     {project(", sources: [apps, ./apps]"), `projects[0].sources[1]: "./apps"` + noFiles},
		"** in a name":           {project(", sources: ['apps/shop**']"), `projects[0].sources[0]: "apps/shop**"` + noFiles},
		"a plural":               {project(", resources: {deny: [secrets]}"), `projects[0].resources.deny[0]: "secrets"` + noKind},
		"a version": {project(", resources: {deny: [apps/v1/Deployment]}"),
			`projects[0].resources.deny[0]: "apps/v1/Deployment"` + noKind},
		"nothing allowed": {project(", resources: {allow: []}"),
			"projects[0].resources.allow: is empty, so nothing would be allowed; list kinds, or leave it out to allow all kinds not in deny"},
		"an account": {project(", serviceAccount: a/b/c"),
			`projects[0].serviceAccount: "a/b/c" is not a service account; write namespace/name, or the name of a service account in the app's namespace`},
		"a weight of 0": {project(", rollouts: {maxFirstWeight: 0}"),
			"projects[0].rollouts.maxFirstWeight: 0 is not within 1..100; give a percentage of 1 to 100"},
		"a duration": {project(", rollouts: {minDuration: half an hour}"),
			`projects[0].rollouts.minDuration: "half an hour" is not a duration; write seconds, or a duration such as 30s, 5m, 1h30m`},
		"a feature that is none": {project(", rollouts: {forbid: [entryWithoutEvidence]}"),
			`projects[0].rollouts.forbid[0]: "entryWithoutEvidence" is not one of promoteFull, fastRollbackOff`},
		"no authors": {project(", rollouts: {byAuthor: [{mayPromote: false}]}"),
			"projects[0].rollouts.byAuthor[0].authors: is missing; name authors: ['*[bot]']"},
		"an author's field": {project(", rollouts: {byAuthor: [{authors: [a], mayMerge: false}]}"),
			"projects[0].rollouts.byAuthor[0].mayMerge: is not a known field; use one of authors, mayPromote, minDuration, requireAnalysis"},
		"two lines as an author": {project(`, rollouts: {byAuthor: [{authors: ["a\nb"]}]}`),
			`projects[0].rollouts.byAuthor[0].authors[0]: "a\nb" is not a pattern for authors; write a name or an address, with * for any ` +
				`characters: '*[bot]'`},
		"a promotion as a text": {project(", rollouts: {byAuthor: [{authors: [a], mayPromote: 'no'}]}"),
			`projects[0].rollouts.byAuthor[0].mayPromote: must be true or false, not the string "no"; write true or false, without quotes`},
		"unmatched":         {"unmatched: refuse\n" + project(""), `unmatched: "refuse" is not one of deny, allow`},
		"a quota":           {project(", quota: {objects: -1}"), "projects[0].quota.objects: -1 is negative; give 0 or more"},
		"a second document": {project("") + "---\n" + policyHead + project(""), "has more than one document; keep one"},
	} {
		checkPolicyRefused(t, name, policyHead+tt.text, tt.want)
	}
	checkPolicyRefused(t, "another kind", "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n", `kind: "Config" is not Policy`)
}

func checkPolicyRefused(t *testing.T, name, text, want string) {
	t.Helper()
	if _, err := rollout.ParsePolicy("policy.yaml", []byte(text)); err == nil || err.Error() != "policy.yaml: "+want {
		t.Errorf("%s:\n got: %v\nwant: %s", name, err, want)
	}
}

// TestProjectOf checks that an app must belong to exactly one project, unless the policy also permits apps without a project.
func TestProjectOf(t *testing.T) {
	projects := policyHead +
		"projects:\n- {name: shop, apps: [shop, shop-*], namespaces: [shop]}\n- {name: till, apps: ['*-till', till], namespaces: [till]}\n"
	for name, tt := range map[string]struct{ policy, app, want, err string }{
		"by its name":   {projects, "shop", "shop", ""},
		"by a pattern":  {projects, "shop-eu", "shop", ""},
		"the other one": {projects, "till", "till", ""},
		"of two": {projects, "shop-till", "",
			"projects[1].apps: app shop-till is in project shop and in project till; name it in one project"},
		"of none":          {projects, "edge", "", "projects: app edge is in no project; name it in one project, or write unmatched: allow"},
		"of none, allowed": {strings.Replace(projects, "projects:", "unmatched: allow\nprojects:", 1), "edge", "", ""},
	} {
		p, err := rollout.ParsePolicy("policy.yaml", []byte(tt.policy))
		must(t, err)
		got, err := p.ProjectOf(tt.app)
		switch {
		case tt.err != "" && (err == nil || err.Error() != "policy.yaml: "+tt.err || rollout.ReasonOf(err) != rollout.HeldPolicy):
			t.Errorf("%s: error %v, want %s", name, err, tt.err)
		case tt.err == "" && (err != nil || (got == nil) != (tt.want == "") || got != nil && got.Name != tt.want):
			t.Errorf("%s: project %+v, error %v, want %s", name, got, err, tt.want)
		}
	}
	if got, err := (&rollout.Policy{}).ProjectOf("shop"); got != nil || rollout.ReasonOf(err) != rollout.HeldPolicy {
		t.Errorf("by an empty one: %+v, %v", got, err)
	}
	if got, err := (*rollout.Policy)(nil).ProjectOf("shop"); got != nil || err != nil {
		t.Errorf("without a policy: %+v, %v", got, err)
	}
}

func TestHasSource(t *testing.T) {
	for name, tt := range map[string]struct {
		pattern, file string
		want          bool
	}{
		"any":                    {"**", "apps/shop/a.yaml", true},
		"below a folder":         {"apps/shop/**", "apps/shop/overlays/prod/a.yaml", true},
		"of folders alike":       {"apps/shop*/**", "apps/shop-eu/a.yaml", true},
		"a name that goes on":    {"apps/shop/**", "apps/shop2/a.yaml", false},
		"another folder":         {"apps/shop/**", "base/a.yaml", false},
		"a * is one folder":      {"apps/*/a.yaml", "apps/shop/overlays/a.yaml", false},
		"in between":             {"apps/**/prod/*.yaml", "apps/shop/overlays/prod/a.yaml", true},
		"nothing in between":     {"apps/**/a.yaml", "apps/a.yaml", true},
		"not above":              {"apps/**/a.yaml", "a.yaml", false},
		"the whole name":         {"apps/a.yaml", "x/apps/a.yaml", false},
		"many, which take long?": {strings.Repeat("**/", 40) + "x", strings.Repeat("a/", 200) + "y", false},
	} {
		compare.CheckNamed(t, name, tt.want, (&rollout.Project{Sources: []string{"else", tt.pattern}}).HasSource(tt.file))
	}
	if !(&rollout.Project{}).HasSource("any") {
		t.Error("a project without sources takes no files")
	}
}

func TestIsKind(t *testing.T) {
	secret, role := rollout.Ref{Kind: "Secret"}, rollout.Ref{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	for pattern, want := range map[string][2]bool{
		"*": {true, true}, "Secret": {true, false}, "/Secret": {true, false}, "*/Secret": {true, false}, "/*": {true, false},
		"rbac.authorization.k8s.io/*": {false, true}, "*.k8s.io/Role": {false, true}, "Role": {false, false}, "*/*": {true, true},
		"secret": {true, false}, "RBAC.authorization.k8s.io/role": {false, true},
	} {
		compare.CheckNamed(t, pattern, want, [2]bool{secret.IsKind([]string{pattern}), role.IsKind([]string{pattern})})
		compare.CheckNamed(t, pattern+" of secret", want[0], (rollout.Ref{Kind: "secret"}).IsKind([]string{pattern}))
	}
}

// TestAuthors checks which authors a rule is for. In a pattern, only * is special.
func TestAuthors(t *testing.T) {
	const renovate, ann = "renovate[bot] <29139614+renovate[bot]@users.noreply.github.com>", "Ann Lee <ann@example.com>"
	for _, tt := range []struct {
		pattern, author string
		want            bool
	}{
		{"*[bot]", renovate, true},
		{"*[bot]", "Renovate[Bot] <r@example.com>", true},
		{"renovate[bot]", renovate, true},
		{"*+renovate[bot]@users.noreply.github.com", renovate, true},
		{renovate, renovate, true},
		{"*", ann, true},
		{"ann@example.com", ann, true},
		{"*@example.com", ann, true},
		{"Ann*", ann, true},
		{"*[bot]", ann, false},
		{"*[bot]", "robot <robot@example.com>", false}, // [bot] is no set of characters
		{"*[bot]", "b <b@example.com>", false},
		{"*[bot]", "Ann [bot] Lee <ann@example.com>", false},
		{"*[bot]", "", false},
		{"renovate?bot?", renovate, false},
		{"renovate.*", renovate, false},
		{"Ann", ann, false},
		{"a.n@example.com", ann, false},
		{"*[bot]", "renovate[bot]", true}, // a signer
		{"ann@example.com", "ann@example.com", true},
	} {
		rule := rollout.AuthorRules{Authors: []string{"other@example.com", tt.pattern}}
		compare.CheckNamed(t, tt.pattern+" for "+tt.author, tt.want, rule.Has(tt.author))
	}
	const rules = ", rollouts: {byAuthor: [{authors: [ann*], mayPromote: false}, {authors: ['*[bot]'], minDuration: 30m}]}"
	p, err := rollout.ParsePolicy("policy.yaml", []byte(policyHead+project(rules)))
	must(t, err)
	for author, want := range map[string]string{renovate: "", "Bob <ann@example.com>": "project shop, rule rollouts.byAuthor[0].mayPromote: " +
		"Bob <ann@example.com> committed this promotion, and may not promote; let a person promote again, or remove the file"} {
		why, some := p.Projects[0].Bars(author)
		compare.CheckNamed(t, author, []any{want, true}, []any{why, some})
	}
	why, some := (*rollout.Project)(nil).Bars(ann)
	compare.CheckNamed(t, "without a project", []any{"", false}, []any{why, some})
}

// FuzzPolicy checks that any bytes are either parsed as a policy, or refused with an InvalidError of one line. The methods of a parsed
// policy must not panic.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(policyHead + project(", sources: ['apps/**/a*', '**'], clusterResources: [Namespace], "+
		"resources: {deny: [/Secret, '*/Role'], allow: ['*']}")))
	f.Add([]byte(policyHead + project(", serviceAccount: shop/deployer, promoters: /keys, quota: {objects: 300, deployments: 40}, "+
		"rollouts: {required: true, maxFirstWeight: 25, requireAnalysis: true, minDuration: 30m, forbid: [promoteFull], "+
		"byAuthor: [{authors: ['*[bot]', 'a**'], requireAnalysis: true, mayPromote: false}]}")))
	f.Add([]byte(policyHead + "unmatched: allow\nprojects: [{name: a, apps: ['[a-z]*'], namespaces: ['?']}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := rollout.ParsePolicy("policy.yaml", data)
		read(t, p != nil, err)
		if err != nil {
			return
		}
		if len(p.Projects) == 0 || !slices.Contains([]string{rollout.PolicyAllow, "deny"}, p.Unmatched) {
			t.Errorf("%+v is a policy", p)
		}
		for _, project := range p.Projects {
			if project.Name == "" || len(project.Apps) == 0 || len(project.Namespaces) == 0 {
				t.Errorf("%+v is a project", project)
			}
			project.HasSource("apps/shop/a.yaml")
			project.Bars("renovate[bot] <r@example.com>")
			rollout.Ref{Group: "apps", Kind: "Deployment"}.IsKind(project.Resources.Deny)
		}
		found, err := p.ProjectOf("shop")
		read(t, err == nil, err)
		if err == nil && found == nil && p.Unmatched != rollout.PolicyAllow {
			t.Error("an app of no project is let through")
		}
	})
}

func TestForbids(t *testing.T) {
	p := &rollout.Project{}
	p.Rollouts.Forbid = []string{"promoteFull"}
	if !p.Forbids("promoteFull") || p.Forbids("fastRollbackOff") || (*rollout.Project)(nil).Forbids("promoteFull") {
		t.Error("a project forbids what it lists, and none forbids nothing")
	}
}
