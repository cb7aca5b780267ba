package rollout_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const configHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"

const prodConfig = ".gitrollout/prod-eu/config.yaml"

// parsed returns the Config for a text without apiVersion and kind.
func parsed(t *testing.T, text string) *rollout.Config {
	t.Helper()
	c, err := rollout.ParseConfig(prodConfig, []byte(configHead+text))
	must(t, err)
	return c
}

// checkRefused checks that ParseConfig refuses a text. The error must be the file's name and then exactly the given text.
func checkRefused(t *testing.T, name, config, want string) {
	t.Helper()
	_, err := rollout.ParseConfig(prodConfig, []byte(configHead+config))
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || err.Error() != prodConfig+": "+want {
		t.Errorf("%s:\n got: %v\nwant: %s", name, err, want)
	}
}

func TestParseConfig(t *testing.T) {
	plain := rollout.Config{
		File: rollout.ConfigPath("prod-eu"), APIVersion: rollout.AlphaVersion,
		AutoRevert: rollout.AutoRevertPropose, Interval: 30 * time.Second, PushInterval: time.Second,
		StateBranch: "gitrollout/state/prod-eu", Apps: []rollout.AppGlob{{Path: "a", Namespace: "default", Tier: 1}},
		Shared: rollout.SharedChanges{Over: 10, Cohorts: []rollout.Amount{{1, false}, {10, true}, {100, true}}, Soak: 10 * time.Minute,
			Timeout: 4 * time.Hour},
	}
	for name, tt := range map[string]struct {
		text   string
		change func(*rollout.Config)
	}{
		"defaults": {"apps: [{path: apps/*/overlays/prod}]\n", func(c *rollout.Config) { c.Apps[0].Path = "apps/*/overlays/prod" }},
		"all set": {
			"interval: 1m30s\npushInterval: 10s\nautoRevert: push\nstateBranch: gitrollout/eu/state\n" +
				"stateRepo: ssh://git@git.example.com/state.git\napps:\n" +
				"- {path: infra/ingress/, name: edge-ingress, namespace: edge, namespaces: [edge-*], clusterResources: [Namespace, example.com/*], " +
				"serviceAccount: edge/deployer}\n- {path: \"a/[b-d]?\", tier: 3}\n",
			func(c *rollout.Config) {
				c.AutoRevert, c.Interval, c.PushInterval = rollout.AutoRevertPush, 90*time.Second, 10*time.Second
				c.StateRepo = "ssh://git@git.example.com/state.git"
				c.StateBranch, c.Apps = "gitrollout/eu/state", []rollout.AppGlob{
					{Path: "infra/ingress", Name: "edge-ingress", Namespace: "edge", Namespaces: []string{"edge-*"},
						ClusterResources: []string{"Namespace", "example.com/*"}, ServiceAccount: "edge/deployer", Tier: 1},
					{Path: "a/[b-d]?", Namespace: "default", Tier: 3},
				}
			},
		},
		"limits": {"apps: [{path: a}]\nlimits: {memory: 2Gi, renderTime: 1m}\n", func(c *rollout.Config) {
			c.Limits = rollout.Limits{Memory: 2 << 30, RenderTime: time.Minute}
		}},
		"one limit": {"apps: [{path: a}]\nlimits: {memory: 128Mi}\n", func(c *rollout.Config) {
			c.Limits = rollout.Limits{Memory: 128 << 20, RenderTime: 30 * time.Second}
		}},
		"shared changes": {"apps: [{path: a}]\nsharedChanges: {over: 0, cohorts: [2, 5, 50%, 100%], soak: 0s, timeout: 1h}\n",
			func(c *rollout.Config) {
				c.Shared = rollout.SharedChanges{Cohorts: []rollout.Amount{{2, false}, {5, false}, {50, true}, {100, true}}, Timeout: time.Hour}
			}},
		"at the limit": {"interval: 1s\nautoRevert: off\napps: [{path: a}]\n", func(c *rollout.Config) {
			c.Interval, c.AutoRevert = time.Second, rollout.AutoRevertOff
		}},
	} {
		want := plain
		want.Apps = slices.Clone(plain.Apps)
		tt.change(&want)
		want.Limits = want.Limits.OrDefault()
		compare.CheckNamed(t, name, &want, parsed(t, tt.text), rollout.AppGlob{}, rollout.Window{})
	}
}

// TestParseConfigRefuses checks the error message for each mistake in a configuration.
func TestParseConfigRefuses(t *testing.T) {
	const (
		apps     = "apps: [{path: a}]\n"
		notBelow = " is not below gitrollout/, the only branches that gitrollout pushes to; use gitrollout/state/<cluster>"
		noBranch = " is not a branch name; use gitrollout/state/<cluster>"
		noRevert = " must be propose, push or off; write propose, which is the default"
		noList   = ": must be a list, not a mapping; begin each entry with a dash"
		fromRoot = "; name folders from the repository's root"
		noLast   = "has no last cohort of 100%, so some apps would never get a change; end with 100%: [1, 10%, 100%]"
		noName   = " is not a name; use lower-case letters, digits and -, at most 63"
	)
	for name, tt := range map[string]struct{ text, want string }{
		"not YAML":               {"apps: [\n", "is not valid YAML: yaml: line 3: did not find expected node content"},
		"an unknown anchor":      {"apps: *hunter2\n", "is not valid YAML: yaml: unknown anchor referenced"},
		"a key without a string": {apps + "null: hunter2\n", "is not valid YAML: unsupported map key of type: %!s(<nil>), key: <nil>"},
		"a mapping as a key":     {apps + "? {hunter2: a}\n: b\n", "is not valid YAML: yaml: invalid map key"},
		"unknown field":          {apps + "intervall: 3s\n", "intervall: is not a known field; did you mean interval?"},
		"two lines": {apps + "\"a\\nb\": 3s\n", "a b: is not a known field; use one of apiVersion, apps, autoRevert, " +
			"forge, interval, kind, kubernetes, limits, notifications, pushInterval, sharedChanges, stateBranch, stateRepo, windows, workloads"},
		"unknown app field":  {"apps: [{path: a, nampespace: x}]\n", "apps[0].nampespace: is not a known field; did you mean namespace?"},
		"duplicate":          {apps + apps, `is not valid YAML: yaml: unmarshal errors: line 4: key "apps" already set in map`},
		"wrong type":         {"apps: {path: a}\n", "apps" + noList},
		"no apps":            {"", "apps: is missing; name the folders of your kustomizations: - path: apps/*/overlays/prod"},
		"interval unit":      {apps + "interval: 30\n", "interval: must be a string, not 30; write 30s, 1m or the like"},
		"interval text":      {apps + "interval: soon\n", `interval: "soon" is not a duration; write 30s, 1m or the like`},
		"interval short":     {apps + "interval: 999ms\n", `interval: "999ms" is less than 1s; use 1s or more`},
		"pushInterval short": {apps + "pushInterval: 10ms\n", `pushInterval: "10ms" is less than 1s; use 1s or more`},
		"memory short":       {apps + "limits: {memory: 127Mi}\n", `limits.memory: 127Mi is less than 128Mi; give more`},
		"memory unit":        {apps + "limits: {memory: 512}\n", `limits.memory: 512 is not a size; write 512Mi, 1Gi or the like`},
		"memory enough": {apps + "limits: {memory: 524288Gi}\n",
			`limits.memory: the string "524288Gi" is not a size; write 512Mi, 1Gi or the like`},
		"memory negative": {apps + "limits: {memory: -1Gi}\n", `limits.memory: -1Gi is less than 128Mi; give more`},
		"render time": {apps + "limits: {renderTime: 0s}\n",
			`limits.renderTime: must be more than 0, not the string "0s"; write 30s, 1m or the like`},
		"interval negative": {apps + "interval: -1m\n", `interval: "-1m" is less than 1s; use 1s or more`},
		"branch main":       {apps + "stateBranch: main\n", `stateBranch: "main"` + notBelow},
		"branch empty":      {apps + "stateBranch: \"\"\n", `stateBranch: ""` + notBelow},
		"branch escapes":    {apps + "stateBranch: gitrollout/../main\n", `stateBranch: "gitrollout/../main"` + noBranch},
		"branch space":      {apps + "stateBranch: gitrollout/a b\n", `stateBranch: "gitrollout/a b"` + noBranch},
		"branch slash":      {apps + "stateBranch: gitrollout/\n", `stateBranch: "gitrollout/"` + noBranch},
		"repo password": {apps + "stateRepo: https://a:b@git.example.com/state.git\n",
			"stateRepo: \"https://***@git.example.com/state.git\" is not the address of a repository; write https://host/path.git or " +
				"git@host:path.git, without a password"},
		"branch proposals": {apps + "stateBranch: gitrollout/promote/x\n",
			`stateBranch: "gitrollout/promote/x" is where proposals are pushed to; use gitrollout/state/<cluster>`},
		"over":      {apps + "sharedChanges: {over: -1}\n", "sharedChanges.over: -1 is negative; give 0 or more"},
		"no cohort": {apps + "sharedChanges: {cohorts: []}\n", "sharedChanges.cohorts: " + noLast},
		"cohort of none": {apps + "sharedChanges: {cohorts: [0, 100%]}\n",
			`sharedChanges.cohorts[0]: "0" is not a size of a cohort; give 1 or more apps, or 1% to 100%`},
		"cohort of too many": {apps + "sharedChanges: {cohorts: [101%]}\n",
			`sharedChanges.cohorts[0]: "101%" is not a size of a cohort; give 1 or more apps, or 1% to 100%`},
		"cohorts shrink": {apps + "sharedChanges: {cohorts: [10%, 10%, 100%]}\n",
			`sharedChanges.cohorts[1]: "10%" is not more than the previous cohort's "10%"; include the apps of all earlier cohorts: [1, 10%, 100%]`},
		"cohorts end": {apps + "sharedChanges: {cohorts: [1, 10%]}\n",
			"sharedChanges.cohorts: " + noLast},
		"soak": {apps + "sharedChanges: {soak: soon}\n",
			`sharedChanges.soak: "soon" is not a duration; write seconds, or a duration such as 30s, 5m, 1h30m`},
		"no timeout": {apps + "sharedChanges: {timeout: 0s}\n",
			`sharedChanges.timeout: must be more than 0, not the string "0s"; write 4h or the like`},
		"tier": {"apps: [{path: a, tier: 0}]\n",
			"apps[0].tier: 0 is not within 1..100; write 1 for the first apps, and up to 100 for later apps"},
		"autoRevert":         {apps + "autoRevert: merge\n", "autoRevert: merge" + noRevert},
		"autoRevert: a list": {apps + "autoRevert: [push]\n", "autoRevert: [push]" + noRevert},
		"notifications":      {apps + "notifications: {slack: x}\n", "notifications" + noList},
		"signing":            {apps + "signing: {key: x}\n", "signing: is not supported yet; leave it out"},
		"no path":            {"apps: [{name: x}]\n", "apps[0].path: is missing; name the folder of a kustomization"},
		"absolute path": {"apps: [{path: /apps}]\n",
			`apps[0].path: "/apps" begins with a slash; paths are relative to the repository's root`},
		"path up":            {"apps: [{path: a}, {path: a/../b}]\n", `apps[1].path: "a/../b" has the segment ".."` + fromRoot},
		"path dot":           {"apps: [{path: ./a}]\n", `apps[0].path: "./a" has the segment "."` + fromRoot},
		"path empty segment": {"apps: [{path: a//b}]\n", `apps[0].path: "a//b" has the segment ""` + fromRoot},
		"path double star": {"apps: [{path: a/**/b}]\n",
			`apps[0].path: "a/**/b" has **, and a * matches within one folder; write one * for each level`},
		"path pattern": {"apps: [{path: \"a/[b\"}]\n", `apps[0].path: "a/[b" is not a pattern: syntax error in pattern`},
		"namespace":    {"apps: [{path: a, namespace: Shop}]\n", `apps[0].namespace: "Shop"` + noName},
		"no namespace": {"apps: [{path: a, namespaces: [\"\"]}]\n", "apps[0].namespaces[0]: is empty"},
		"no kind":      {"apps: [{path: a, clusterResources: [\"\"]}]\n", "apps[0].clusterResources[0]: is empty"},
		"namespaces": {"apps: [{path: a, namespaces: [shop, \"a/b\"]}]\n",
			`apps[0].namespaces[1]: "a/b" is not a valid namespace; use lower-case letters, digits and -, and * for any characters`},
		"clusterResources": {"apps: [{path: a, clusterResources: [v1/Namespace/x]}]\n",
			`apps[0].clusterResources[0]: "v1/Namespace/x" is not a kind; write group/Kind, or Kind for the core group`},
		"serviceAccount": {"apps: [{path: a, serviceAccount: a/b/c}]\n",
			`apps[0].serviceAccount: "a/b/c" is not a service account; write namespace/name, or the name of a service account in the app's namespace`},
		"name with wildcard": {"apps: [{path: a/*, name: x}]\n", `apps[0].name: "x" would be the name of every app that a/* matches; ` +
			`leave it out: each app is named by the text that the wildcards match`},
		"name": {"apps: [{path: a, name: -x}]\n", `apps[0].name: "-x"` + noName},
	} {
		checkRefused(t, name, tt.text, tt.want)
	}
}

func TestAppNames(t *testing.T) {
	for name, tt := range map[string]struct {
		glob rollout.AppGlob
		dir  string
		want string // "" for an error
	}{
		"one wildcard":  {rollout.AppGlob{Path: "apps/*/overlays/prod"}, "apps/shop/overlays/prod", "shop"},
		"two wildcards": {rollout.AppGlob{Path: "teams/*/*/prod"}, "teams/a/shop/prod", "a-shop"},
		"part":          {rollout.AppGlob{Path: "apps/web-*"}, "apps/web-shop", "web-shop"},
		"last folder":   {rollout.AppGlob{Path: "infra/ingress"}, "infra/ingress", "ingress"},
		"name":          {rollout.AppGlob{Path: "infra/ingress", Name: "edge"}, "infra/ingress", "edge"},
		"underscore":    {rollout.AppGlob{Path: "apps/*"}, "apps/my_app", ""},
		"too long":      {rollout.AppGlob{Path: "apps/*"}, "apps/" + strings.Repeat("a", 64), ""},
	} {
		got, err := tt.glob.App(tt.dir)
		if got.Name != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: name %q, error %v; want %q", name, got.Name, err, tt.want)
		}
	}
}

// TestAppsHaveTheLimitsOfTheirConfiguration checks that an app gets the limits of its configuration, or empty limits if the configuration
// has the defaults.
func TestAppsHaveTheLimitsOfTheirConfiguration(t *testing.T) {
	for text, want := range map[string]rollout.Limits{
		"":                                  {},
		"limits: {}\n":                      {},
		"limits: {renderTime: 30s}\n":       {},
		"limits: {renderTime: 45s}\n":       {Memory: 512 << 20, RenderTime: 45 * time.Second},
		"limits: {memory: 1Gi}\n":           {Memory: 1 << 30, RenderTime: 30 * time.Second},
		"limits: {memory: 512Mi}\n# same\n": {},
	} {
		app, err := parsed(t, "apps: [{path: apps/*}]\n"+text).Apps[0].App("apps/shop")
		must(t, err)
		compare.CheckNamed(t, text, want, app.Limits)
	}
}

// TestVariableEntries checks that an app gets the variables of its entry, encoded in a fixed order. "substitute: {}" turns substitution on.
// An entry without substitute and substituteFrom leaves it off.
func TestVariableEntries(t *testing.T) {
	const app = "apps:\n- path: shop\n  "
	for entry, want := range map[string]rollout.Variables{
		"prune: true":                       {},
		"substitute: {}":                    {On: true},
		"substitute: {b: '2', _a1: ''}":     {On: true, Values: `{"_a1":"","b":"2"}`},
		"substituteFrom: [{file: c/p.env}]": {On: true, Files: "c/p.env"},
		"substituteFrom: [{file: a b.env}, {file: c.yaml}]\n  substitute: {a: b}": {On: true, Files: "a b.env\nc.yaml", Values: `{"a":"b"}`},
	} {
		is, err := parsed(t, app+entry+"\n").Apps[0].App("shop")
		must(t, err)
		compare.CheckNamed(t, entry, want, is.Variables)
	}
	v := rollout.Variables{On: true, Files: "a b.env\nc.yaml", Values: `{"a":"b"}`}
	compare.Check(t, v, rollout.NewVariables(v.Map(), v.From()))
	for entry, want := range map[string]string{
		"substitute: {a: 3}":          "apps[0].substitute[a]: must be a string, not 3; quote it",
		"substitute: {a-b: x}":        `apps[0].substitute: "a-b" is not a valid variable name; use letters, digits and _, and no digit first`,
		"substituteFrom: [{name: x}]": "apps[0].substituteFrom[0].name: is not a known field; use one of file",
		"substituteFrom: [{}]": "apps[0].substituteFrom[0].file: is missing; name a .env file or a ConfigMap's manifest, " +
			"from the repository's root",
	} {
		checkRefused(t, entry, app+entry+"\n", want)
	}
}

// TestLinks checks that an app gets the links of its entry, and that a link's host has no placeholder.
func TestLinks(t *testing.T) {
	const shop = "apps:\n- path: shop\n  links: "
	for entry, want := range map[string]string{
		"{}": "",
		"{Prometheus: 'https://p.example.com:9090/graph?g0.expr={query}&g0.tab=0', Grafana: http://g}": `{"Grafana":"http://g",` +
			`"Prometheus":"https://p.example.com:9090/graph?g0.expr={query}\u0026g0.tab=0"}`,
		"{G: 'https://g.example.com/d/{app}/{namespace}#{app}'}": `{"G":"https://g.example.com/d/{app}/{namespace}#{app}"}`,
	} {
		app, err := parsed(t, shop+entry+"\n").Apps[0].App("shop")
		must(t, err)
		compare.CheckNamed(t, entry, want, app.Links)
	}
	for _, bad := range []string{"javascript:alert(1)", "https://{app}.example.com/", "https://", "https://g/{user}", "https://g/{app",
		"https://g/a b", "https://ann@g/", "//g/", ""} {
		checkRefused(t, bad, shop+"{G: '"+bad+"'}\n", fmt.Sprintf("apps[0].links[G]: %q is not an address; write https://host/path; "+
			"{app}, {namespace} and {query} are placeholders", strings.Replace(bad, "ann", "***", 1)))
	}
}

// TestHelmEntries checks that an app gets the chart options of its entry, and the Kubernetes version and API versions of its configuration.
func TestHelmEntries(t *testing.T) {
	const shop = "apps:\n- path: charts/shop\n  "
	app, err := parsed(t, shop+"helm: {releaseName: eu, valueFiles: [a.yaml, b c.yaml], valuesObject: {replicas: 3, gone: null}, "+
		"skipCrds: true}\nkubernetes: {version: v1.36.3, apiVersions: [v1, example.com/v1beta1/Shop]}\n").Apps[0].App("charts/shop")
	must(t, err)
	want := rollout.App{Name: "shop", Path: "charts/shop", Namespace: "default", Kubernetes: "v1.36.3",
		APIVersions: "v1 example.com/v1beta1/Shop",
		Helm:        rollout.Helm{ReleaseName: "eu", ValueFiles: "a.yaml\nb c.yaml", Values: `{"gone":null,"replicas":3}`, SkipCRDs: true}}
	compare.Check(t, want, app)
	compare.CheckNamed(t, "files", []string{"a.yaml", "b c.yaml"}, app.Helm.Files())
	for entry, want := range map[string]string{
		"helm: {valuesObject: [a]}":  "apps[0].helm.valuesObject: is not a mapping; write values as in the chart's values.yaml",
		"helm: {releaseName: A}":     `apps[0].helm.releaseName: "A" is not a name; use lower-case letters, digits and -, at most 63`,
		"helm: {valuesObj: {}}":      "apps[0].helm.valuesObj: is not a known field; did you mean valuesObject?",
		"helm: {valueFiles: a.yaml}": "apps[0].helm.valueFiles: must be a list, not a string; begin each entry with a dash",
	} {
		checkRefused(t, entry, shop+entry+"\n", want)
	}
	for kubernetes, want := range map[string]string{
		"{version: latest}":        `kubernetes.version: "latest" is not a version of Kubernetes; write 1.36.3 or the like`,
		"{apiVersions: [Gateway]}": `kubernetes.apiVersions[0]: "Gateway" is not a version of an API; write group/version or group/version/Kind`,
	} {
		checkRefused(t, kubernetes, shop+"helm: {}\nkubernetes: "+kubernetes+"\n", want)
	}
}

// TestMatchesAny checks MatchesAny with one pattern, and with several patterns in braces. A pattern matches a path or the path's last
// element.
func TestMatchesAny(t *testing.T) {
	for pattern, matches := range map[string]map[string]bool{
		"*.md":             {"README.md": true, "docs/a.md": true, "a.yaml": false},
		"docs/*":           {"docs/a": true, "docs/a/b": false, "other/docs/a": false},
		"{*.md,docs/*}":    {"README.md": true, "docs/a.yaml": true, "a.yaml": false},
		"{*.md,*.txt}.old": nil,
		"{*.md":            nil,
		"{a,[}":            nil,
		"[":                nil,
	} {
		if _, err := rollout.MatchesAny(pattern, "a"); (err != nil) != (matches == nil) {
			t.Errorf("%s: %v", pattern, err)
		}
		for name, want := range matches {
			if is, err := rollout.MatchesAny(pattern, name); is != want || err != nil {
				t.Errorf("%s matches %s: %t, %v", pattern, name, is, err)
			}
		}
	}
}
