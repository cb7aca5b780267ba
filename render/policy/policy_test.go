package policy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/policy"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

// parsed returns a policy with one project. The given text adds fields to the project.
func parsed(t *testing.T, more string) *rollout.Policy {
	t.Helper()
	p, err := rollout.ParsePolicy("policy.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n"+
		"- {name: web, apps: [shop], namespaces: [shop, shop-*]"+more+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// judged checks the app at apps/shop in namespace shop against a policy. The app has the given files.
func judged(t *testing.T, p *rollout.Policy, files map[string]string) error {
	t.Helper()
	tree, r := rendered(t, files)
	return policy.Check(tree, r, p, "gitrollout")
}

func rendered(t *testing.T, files map[string]string) (rollout.Tree, *rollout.Render) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if target, is := strings.CutPrefix(content, "-> "); is && err == nil {
			err = os.Symlink(target, name)
		} else if err == nil {
			err = os.WriteFile(name, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := worktree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Namespaces: "*", ClusterResources: "*"}
	r, err := render.New(render.InProcess{}).Render(tree, app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	return tree, r
}

func config(metadata string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {" + metadata + "}\n"
}

// app returns an app at apps/shop with one manifest.
func app(yaml string) map[string]string {
	return map[string]string{"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": yaml}
}

const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 4\n" +
	"  selector: {matchLabels: {app: web}}\n  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}\n"

const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"

// staged returns an app with a Deployment, its Rollout, and four analysis templates. Only the templates "judge" and "job" can fail a
// release.
func staged(strategy string, more ...string) map[string]string {
	files := app(deployment + service + "---\napiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:\n" +
		"  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  " +
		strings.Join(append(more, ""), "\n  ") + "strategy: {" + strategy + "}\n")
	template := "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: NAME}\nspec:\n  MORE\n" +
		"  metrics: [{name: a, failureLimit: LIMIT, consecutiveSuccessLimit: 2, count: 9, interval: 1s, successCondition: 'result == 1', " +
		"provider: {web: {url: 'https://example.com'}}}]\n"
	files["apps/shop/app.yaml"] += "---\n" + strings.NewReplacer("NAME", "judge", "MORE\n", "args: []\n", "LIMIT", "0").Replace(template) +
		"---\n" + strings.NewReplacer("NAME", "job", "MORE\n", "args: []\n", "LIMIT", "0", "web: {url: 'https://example.com'}",
		"job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}",
		"successCondition: 'result == 1', ", "").Replace(template) +
		"---\n" + strings.NewReplacer("NAME", "dry", "MORE", "dryRun: [{metricName: a}]", "LIMIT", "0").Replace(template) +
		"---\n" + strings.NewReplacer("NAME", "never", "MORE\n", "args: []\n", "LIMIT", "-1").Replace(template)
	return files
}

// based returns an app whose only resource is the folder at the given path.
func based(on string) map[string]string {
	return map[string]string{"apps/shop/kustomization.yaml": "resources: [" + on + "]\n",
		"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": config("name: a")}
}

// tried returns a step with an experiment. The arguments add fields to the experiment and to its analysis.
func tried(fields, analysis string) string {
	return "{experiment: {" + fields + "templates: [{name: a, specRef: canary}], analyses: [{name: a, templateName: judge" + analysis + "}]}}"
}

// experiment returns an app with an experiment and without a Service. The given text adds fields to the experiment's template.
func experiment(more string) map[string]string {
	files := staged(steps("{setWeight: 5}, {experiment: {duration: 1m, templates: [{name: c, specRef: canary, " + more + "}]}}"))
	words := strings.NewReplacer(service, "", "image: web}", "image: web, ports: [{containerPort: 80}]}")
	return app(words.Replace(files["apps/shop/app.yaml"]))
}

// metrics sets fields in an app's analysis template "judge".
func metrics(files map[string]string, fields string) map[string]string {
	first, _, _ := strings.Cut(fields, ": ")
	const all = "failureLimit: 0, consecutiveSuccessLimit: 2, count: 9"
	was := map[string]string{"count": all + ", interval: 1s", "consecutiveSuccessLimit": all}[first]
	if was == "" {
		was, fields = "failureLimit: 0", fields+", failureLimit: 0"
	}
	return app(strings.Replace(files["apps/shop/app.yaml"], was, fields, 1))
}

// steps returns a canary with the given steps. In the list, JUDGE stands for an analysis, and HALF-HOUR for a pause of 30 minutes.
func steps(list string) string { return canary("", list) }

func surging(list string) string { return canary("scaling: surge, ", list) }

// background returns a canary with a background analysis, which starts at a step.
func background(from int, list string) string {
	return canary(fmt.Sprintf("analysis: {startingStep: %d, templates: [{templateName: judge}]}, ", from), list)
}

func canary(fields, list string) string {
	words := strings.NewReplacer("JUDGE", "{analysis: {templates: [{templateName: judge}]}}", "HALF-HOUR", "{pause: {duration: 30m}}")
	return "canary: {" + fields + "steps: [" + words.Replace(list) + "]}"
}

// TestRules checks that an app that breaks a rule is refused, and that a similar app that keeps the rule is accepted.
// The message must name the project, the rule and the object, because the author of a commit sees nothing else.
func TestRules(t *testing.T) {
	const ask = ", or ask for a change of the rule in policy.yaml"
	const inApp, inFile = "apps/shop: project web, rule ", "apps/shop/app.yaml: project web, rule "
	const ofKind = "apps/shop/app.yaml: kind: project web, rule "
	const ofNamespace = "apps/shop/app.yaml: metadata.namespace: project web, rule "
	const analysed, slow = ", rollouts: {requireAnalysis: true}", ", rollouts: {minDuration: 30m}"
	linked := based("base")
	splitting := staged("canary: {stableService: web, canaryService: next, trafficRouting: {smi: {}}, steps: [{setWeight: 5}]}")
	splitting["apps/shop/app.yaml"] += strings.Replace(service, "{name: web}", "{name: next}", 1)
	linked["apps/shop/base"] = "-> ../../base"
	statefulSet := strings.NewReplacer("Deployment", "StatefulSet", "spec:\n", "spec:\n  serviceName: web\n").Replace(deployment)
	const low, required = ", rollouts: {maxFirstWeight: 25}", ", rollouts: {required: true}"
	const unmeasured = inFile + "rollouts.requireAnalysis: no metric could stop a release before all users have the new version " +
		"(Deployment/shop/web); add an analysis that can fail before all users have the new version, and is not a dry run" + ask
	tooMuch := func(is, most int) string {
		return fmt.Sprintf(inFile+"rollouts.maxFirstWeight: a release first gives the new version to %d%% of users, more than %d%% "+
			"(Deployment/shop/web); start with a lower weight"+ask, is, most)
	}
	tooShort := func(is string) string {
		return inFile + "rollouts.minDuration: before all users have the new version, a release pauses for only " + is + ", less than 30m0s " +
			"(Deployment/shop/web); lengthen the pauses that have a duration (other pauses do not count)" + ask
	}
	for name, tt := range map[string]struct {
		rules string
		files map[string]string
		want  string
	}{
		"nothing": {"", app(config("name: a")), ""},
		"a file from a base": {", sources: [apps/shop/**]", based("../../base"), "base/a.yaml: project web, rule sources: app shop is " +
			"built from this file, which matches none of apps/shop/**; remove the file from the app" + ask},
		"a base that may be": {", sources: [apps/shop/**, base/**]", based("../../base"), ""},
		"a symlink": {", sources: [apps/shop/**]", linked, "base/a.yaml: project web, rule sources: app shop is " +
			"built from this file, which matches none of apps/shop/**; remove the file from the app" + ask},
		"a kind that is denied": {", resources: {deny: [/ConfigMap]}", app(config("name: a")),
			ofKind + "resources.deny: may not have any ConfigMap (ConfigMap/shop/a); take it out" + ask},
		"though it is allowed": {", resources: {allow: ['*'], deny: [/ConfigMap]}", app(config("name: a")),
			ofKind + "resources.deny: may not have any ConfigMap (ConfigMap/shop/a); take it out" + ask},
		"one that is not allowed": {", resources: {allow: [apps/*]}", app(config("name: a")),
			ofKind + "resources.allow: does not list ConfigMap (ConfigMap/shop/a); take it out" + ask},
		"one that is": {", resources: {allow: [ConfigMap], deny: [/Secret]}", app(config("name: a")), ""},
		"without a namespace": {"", app("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"),
			ofKind + "clusterResources: belongs to no namespace, and the project may have no rbac.authorization.k8s.io/ClusterRole " +
				"(ClusterRole//a); take it out" + ask},
		"one that is named": {", clusterResources: [rbac.authorization.k8s.io/ClusterRole]",
			app("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n"), ""},
		"its Namespace": {", clusterResources: [/Namespace]", app("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop-a}\n"), ""},
		"another's Namespace": {", clusterResources: [/Namespace]", app("apiVersion: v1\nkind: Namespace\nmetadata: {name: till}\n"),
			ofNamespace + "namespaces: the namespace matches none of shop, shop-* (Namespace//till); move it" + ask},
		"another namespace": {"", app(config("name: a, namespace: till")),
			ofNamespace + "namespaces: the namespace matches none of shop, shop-* (ConfigMap/till/a); move it" + ask},
		"by kustomize": {"",
			map[string]string{"apps/shop/kustomization.yaml": "namespace: till\nresources: [app.yaml]\n", "apps/shop/app.yaml": config("name: a")},
			ofNamespace + "namespaces: the namespace matches none of shop, shop-* (ConfigMap/till/a); move it" + ask},
		"a matching namespace": {"", app(config("name: a, namespace: shop-eu")), ""},
		"no Rollout": {required, app(deployment),
			inFile + "rollouts.required: has no Rollout (Deployment/shop/web); add a Rollout for it" + ask},
		"pods without a Rollout": {required, app(strings.NewReplacer("apps/v1", "example.com/v1", "Deployment", "Flock").Replace(deployment)),
			inFile + "rollouts.required: has no Rollout (Flock/shop/web); change it to a Deployment with a Rollout" + ask},
		"a Pod": {required, app("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web}]}\n"),
			inFile + "rollouts.required: has no Rollout (Pod/shop/web); change it to a Deployment with a Rollout" + ask},
		"a StatefulSet": {required, app(statefulSet),
			inFile + "rollouts.required: has no Rollout (StatefulSet/shop/web); add a Rollout for it" + ask},
		"a Job has none": {
			required,
			app("apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\n" +
				"spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: web}]}}}\n"),
			"",
		},
		"an experiment's Service": {", resources: {deny: [/Service]}", experiment("service: {}"),
			inApp + "resources.deny: may not have any Service, and experiment template c of shop/web has one; leave its service out" + ask},
		"with a name": {", resources: {allow: [apps/Deployment]}", experiment("service: {name: web-c}"),
			inApp + "resources.allow: does not list Service, and experiment template c of shop/web has one; leave its service out" + ask},
		"an experiment without": {", resources: {deny: [/Service]}", experiment(""), ""},
		"an experiment's Deployment": {", quota: {deployments: 1}", experiment(""),
			"apps/shop: project web, rule quota.deployments: app shop has 2 Deployments, more than 1; split it" + ask},
		"its Service among all": {", quota: {objects: 2}", experiment("service: {}"),
			"apps/shop: project web, rule quota.objects: app shop has 3 objects, more than 2; split it" + ask},
		"its Deployment among all": {", quota: {objects: 1}", experiment(""),
			"apps/shop: project web, rule quota.objects: app shop has 2 objects, more than 1; split it" + ask},
		"a router's object": {", resources: {deny: [split.smi-spec.io/*]}", splitting,
			inApp + "resources.deny: may not have any split.smi-spec.io/TrafficSplit, and a router makes web for a release; " +
				"use another router" + ask},
		"a router's object among all": {", quota: {objects: 3}", splitting,
			"apps/shop: project web, rule quota.objects: app shop has 4 objects, more than 3; split it" + ask},
		"a Job that measures": {", resources: {deny: [batch/*]}", staged(steps("{analysis: {templates: [{templateName: job}]}}")),
			inApp + "resources.deny: may not have any batch/Job, and metric a of shop/web creates one; use another provider" + ask},
		"analysed after all": {analysed, staged(steps("{setWeight: 100}, JUDGE")), unmeasured},
		"from a late step":   {analysed, staged(background(2, "{setWeight: 5}, {setWeight: 100}, {pause: {}}")), unmeasured},
		"after the switch": {analysed, staged("blueGreen: {activeService: web, postPromotionAnalysis: {templates: [{templateName: judge}]}}"),
			unmeasured},
		"paused after all":              {slow, staged(steps("{setWeight: 100}, HALF-HOUR")), tooShort("0s")},
		"a Rollout":                     {required, staged(steps("{setWeight: 50}")), ""},
		"much at once":                  {low, staged(steps("{setWeight: 0}, {pause: {}}, {setWeight: 26}, {setWeight: 5}")), tooMuch(26, 25)},
		"no more than that":             {low, staged(steps("{setWeight: 25}, {setWeight: 90}")), ""},
		"without steps":                 {low, staged("canary: {}"), tooMuch(100, 25)},
		"all pods by their number":      {low, staged(surging("{setCanaryScale: {weight: 80}}, {pause: {}}, {setWeight: 5}")), tooMuch(80, 25)},
		"a number of pods":              {low, staged(surging("{setCanaryScale: {replicas: 1}}, {setWeight: 5}")), tooMuch(100, 25)},
		"from after the last step":      {analysed, staged(background(2, "{setWeight: 5}, HALF-HOUR")), unmeasured},
		"from the last step":            {analysed, staged(background(1, "{setWeight: 5}, HALF-HOUR")), ""},
		"from the step that moves all":  {analysed, staged(background(1, "{setWeight: 5}, {setWeight: 100}")), unmeasured},
		"in the background of no steps": {analysed, staged(background(0, "")), unmeasured},
		"too late for its steps": {analysed, metrics(staged(background(0, "{setWeight: 5}, HALF-HOUR")), "initialDelay: 1000h"),
			unmeasured},
		"too late for the rest of them": {analysed, metrics(staged(background(1, "HALF-HOUR, {pause: {duration: 10m}}")), "initialDelay: 11m"),
			unmeasured},
		"in time":                {analysed, metrics(staged(background(0, "{setWeight: 5}, HALF-HOUR")), "initialDelay: 30m"), ""},
		"while a person decides": {analysed, metrics(staged(background(0, "{setWeight: 5}, {pause: {}}")), "initialDelay: 24h"), ""},
		"after a person decided": {analysed, metrics(staged(background(0, "{setWeight: 5}, {pause: {}}")), "initialDelay: 1000h"), unmeasured},
		"after a timeout": {analysed,
			metrics(staged(background(0, "{setWeight: 5}, {pause: {timeout: 1m, onTimeout: promote}}")), "initialDelay: 2m"), unmeasured},
		"failed too late": {analysed, metrics(staged(background(0, "{setWeight: 5}, HALF-HOUR")), "count: 99, interval: 1h, failureLimit: 1"),
			unmeasured},
		"failed in time": {analysed, metrics(staged(background(0, "{setWeight: 5}, HALF-HOUR")), "count: 99, interval: 10m, failureLimit: 3"),
			""},
		"as many failures as measurements": {analysed, metrics(staged(steps("JUDGE")), "consecutiveSuccessLimit: 0, count: 9, failureLimit: 9"),
			unmeasured},
		"one more measurement": {analysed, metrics(staged(steps("JUDGE")), "consecutiveSuccessLimit: 0, count: 9, failureLimit: 8"),
			""},
		"a step waits for it":                {analysed, metrics(staged(steps("JUDGE")), "initialDelay: 1000h"), ""},
		"an experiment does not wait for it": {analysed, metrics(staged(steps(tried("duration: 1m, ", ""))), "initialDelay: 2m"), unmeasured},
		"an experiment waits for it": {analysed,
			metrics(staged(steps(tried("duration: 1m, ", ", requiredForCompletion: true"))), "initialDelay: 2m"), ""},
		"all pods by a share, then an analysis": {analysed, staged(steps("{setWeight: 1}, {setCanaryScale: {weight: 100}}, HALF-HOUR, JUDGE")),
			unmeasured},
		"all pods by a share, then a pause": {slow, staged(steps("{setWeight: 1}, {setCanaryScale: {weight: 100}}, HALF-HOUR, JUDGE")),
			tooShort("0s")},
		"all pods by a share after one percent": {low, staged(steps("{setWeight: 1}, {setCanaryScale: {weight: 100}}, HALF-HOUR, JUDGE")),
			tooMuch(100, 25)},
		"all pods by a number, then an analysis": {analysed, staged(steps("{setWeight: 1}, {setCanaryScale: {replicas: 50}}, HALF-HOUR, JUDGE")),
			unmeasured},
		"all pods by a number, then a pause": {slow, staged(steps("{setWeight: 1}, {setCanaryScale: {replicas: 50}}, HALF-HOUR, JUDGE")),
			tooShort("0s")},
		"all pods by a number after one percent": {low, staged(steps("{setWeight: 1}, {setCanaryScale: {replicas: 50}}, HALF-HOUR, JUDGE")),
			tooMuch(100, 25)},
		"all pods in addition, then an analysis": {analysed, staged(surging("{setWeight: 1}, {setCanaryScale: {weight: 100}}, HALF-HOUR, JUDGE")),
			unmeasured},
		"all pods in addition, then a pause": {slow, staged(surging("{setWeight: 1}, {setCanaryScale: {weight: 100}}, HALF-HOUR, JUDGE")),
			tooShort("0s")},
		"all pods in addition after one percent": {low, staged(surging("{setWeight: 1}, {setCanaryScale: {weight: 100}}, HALF-HOUR, JUDGE")),
			tooMuch(100, 25)},
		"three of four pods, then an analysis": {analysed, staged(steps("{setCanaryScale: {replicas: 3}}, HALF-HOUR, JUDGE")), ""},
		"three of four pods, then a pause":     {slow, staged(steps("{setCanaryScale: {replicas: 3}}, HALF-HOUR, JUDGE")), ""},
		"all at the promotion": {low, staged("canary: {stableService: web, scaling: surge, steps: [{setWeight: 5}]}"),
			tooMuch(100, 25)},
		"of an experiment":    {analysed, staged(steps(tried("", ", requiredForCompletion: true"))), ""},
		"blue-green":          {", rollouts: {maxFirstWeight: 99}", staged("blueGreen: {activeService: web}"), tooMuch(100, 99)},
		"nothing is measured": {analysed, staged(steps("{setWeight: 5}")), unmeasured},
		"a dry run":           {analysed, staged(steps("{analysis: {templates: [{templateName: dry}]}}")), unmeasured},
		"it never fails":      {analysed, staged(steps("{analysis: {templates: [{templateName: never}]}}")), unmeasured},
		"without a condition": {analysed,
			app(strings.ReplaceAll(staged(steps("JUDGE"))["apps/shop/app.yaml"], "successCondition: 'result == 1', ", "")), unmeasured},
		"a Job without a condition": {analysed, staged(steps("{analysis: {templates: [{templateName: job}]}}")), ""},
		"an analysis":               {analysed, staged(steps("JUDGE")), ""},
		"in the background": {analysed, staged("canary: {analysis: {templates: [{templateName: judge}]}, steps: [{setWeight: 5}]}"),
			""},
		"too short": {slow, staged(steps("{pause: {duration: 20m}}, {pause: {}}, {pause: {duration: 599}}")),
			tooShort("29m59s")},
		"long enough":        {slow, staged(steps("{pause: {duration: 20m}}, {pause: {duration: 10m}}")), ""},
		"it promotes itself": {slow, staged("blueGreen: {activeService: web, autoPromotionSeconds: 1800}"), ""},
		"all steps back": {", rollouts: {forbid: [fastRollbackOff]}", staged(steps("{setWeight: 5}"), "rollbackWindow: {revisions: 0}"),
			inFile + "rollouts.forbid: a rollback to an earlier version takes all steps (Deployment/shop/web); leave rollbackWindow out" + ask},
		"some fast": {", rollouts: {forbid: [fastRollbackOff]}", staged(steps("{setWeight: 5}"), "rollbackWindow: {revisions: 1}"), ""},
		"all steps back, which may be": {", rollouts: {forbid: [promoteFull]}", staged(steps("{setWeight: 5}"), "rollbackWindow: {revisions: 0}"),
			""},
		"as many Deployments": {", quota: {deployments: 1}", app(deployment + "---\n" + statefulSet), ""},
		"many objects": {", quota: {objects: 1}", app(config("name: a") + "---\n" + config("name: b")),
			inApp + "quota.objects: app shop has 2 objects, more than 1; split it" + ask},
		"so many": {", quota: {objects: 2}", app(config("name: a") + "---\n" + config("name: b")), ""},
		"a Deployment": {", quota: {deployments: 0}", app(deployment),
			inApp + "quota.deployments: app shop has 1 Deployments, more than 0; split it" + ask},
	} {
		t.Run(name, func(t *testing.T) {
			err := judged(t, parsed(t, tt.rules), tt.files)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case tt.want != "" && (err == nil || err.Error() != tt.want || rollout.ReasonOf(err) != rollout.HeldPolicy):
				t.Errorf("\n got: %v\nwant: %s", err, tt.want)
			}
		})
	}
}

// TestOrderOfRules checks that only the first broken rule is reported.
func TestOrderOfRules(t *testing.T) {
	files := staged("blueGreen: {activeService: web}")
	files["apps/shop/app.yaml"] += "---\n" + config("name: a, namespace: till") + "---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
	all := []string{", sources: [base/**]", ", resources: {deny: [apps/Deployment]}", "",
		", rollouts: {maxFirstWeight: 1}", ", quota: {objects: 1}"}
	for i, rule := range []string{"sources", "resources.deny", "clusterResources"} {
		compare.Contains(t, fmt.Sprint(judged(t, parsed(t, strings.Join(all[i:], "")), files)), "rule "+rule+":")
	}
	err := judged(t, parsed(t, strings.Join(all[3:], "")), staged("blueGreen: {activeService: web}"))
	compare.Contains(t, fmt.Sprint(err), "rule rollouts.maxFirstWeight:")
}

// TestAppsAreMatched checks that every app is accepted without a policy. With a policy, an app without a project is refused by default.
func TestAppsAreMatched(t *testing.T) {
	files := maps.Clone(app(config("name: a")))
	compare.CheckNamed(t, "without a policy", nil, judged(t, nil, files))
	p := parsed(t, "")
	p.Projects[0].Apps = []string{"other"}
	compare.CheckNamed(t, "of no project", rollout.HeldPolicy, rollout.ReasonOf(judged(t, p, files)))
	p.Unmatched = rollout.PolicyAllow
	compare.CheckNamed(t, "of no project, which is allowed", nil, judged(t, p, files))
}

// TestFirstWeight checks the percentage of users that first get the new version. Without a router, it is a percentage of pods.
func TestFirstWeight(t *testing.T) {
	scale := func(s rollout.CanaryScale) rollout.Step { return rollout.Step{SetCanaryScale: &s} }
	weight := func(n int) rollout.Step { return rollout.Step{SetWeight: &n} }
	matched := func(m rollout.Match) rollout.Step {
		return rollout.Step{Route: &rollout.ManagedRoute{Matches: []rollout.Match{m}}}
	}
	try := func(stable, canary int) rollout.Step {
		return rollout.Step{Experiment: &rollout.Experiment{Templates: []rollout.ExperimentTemplate{
			{SpecRef: rollout.SpecStable, Weight: stable}, {SpecRef: rollout.SpecCanary, Weight: canary}}}}
	}
	for name, c := range map[string]struct {
		traffic *rollout.Traffic
		steps   []rollout.Step
		want    int
	}{
		"an experiment first":     {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{try(10, 30), weight(5)}, 30},
		"an experiment at once":   {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{weight(5), try(10, 30)}, 35},
		"an experiment, no share": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{try(10, 0), weight(5)}, 5},
		"an experiment later": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{
			weight(5), {Pause: &rollout.Pause{}}, try(10, 30)}, 5},
		"of 1000":               {&rollout.Traffic{MaxWeight: 1000}, []rollout.Step{weight(5)}, 1},
		"of 1000, rounded up":   {&rollout.Traffic{MaxWeight: 1000}, []rollout.Step{weight(11)}, 2},
		"of 1000, even":         {&rollout.Traffic{MaxWeight: 1000}, []rollout.Step{weight(10)}, 1},
		"routed, pods first":    {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{scale(rollout.CanaryScale{Weight: new(50)}), weight(7)}, 7},
		"a weight":              {nil, []rollout.Step{weight(1)}, 1},
		"no pods first":         {nil, []rollout.Step{scale(rollout.CanaryScale{Weight: new(0)}), weight(7)}, 7},
		"one percent of pods":   {nil, []rollout.Step{scale(rollout.CanaryScale{Weight: new(1)}), weight(7)}, 1},
		"as many as the weight": {nil, []rollout.Step{scale(rollout.CanaryScale{MatchTrafficWeight: true}), weight(7)}, 7},
		"more pods at once":     {nil, []rollout.Step{weight(1), scale(rollout.CanaryScale{Weight: new(60)})}, 60},
		"fewer pods at once":    {nil, []rollout.Step{weight(30), scale(rollout.CanaryScale{Weight: new(10)})}, 30},
		"more pods by number":   {nil, []rollout.Step{weight(1), scale(rollout.CanaryScale{Replicas: new(2)})}, 100},
		"no pods by number":     {nil, []rollout.Step{weight(1), scale(rollout.CanaryScale{Replicas: new(0)})}, 1},
		"more pods later":       {nil, []rollout.Step{weight(1), {Pause: &rollout.Pause{}}, scale(rollout.CanaryScale{Weight: new(60)})}, 1},
		"after matched users": {nil, []rollout.Step{
			weight(1), {Route: &rollout.ManagedRoute{}}, scale(rollout.CanaryScale{Weight: new(60)})}, 60},
		"routed, then pods": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{weight(1), scale(rollout.CanaryScale{Replicas: new(2)})}, 1},
		"nothing but 0":     {nil, []rollout.Step{weight(0)}, 100},
		"a path": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{
			matched(rollout.Match{Path: &rollout.StringMatch{Prefix: "/"}}), weight(5)}, 100},
		"a method at once": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{
			weight(5), matched(rollout.Match{Method: &rollout.StringMatch{Regex: ".*"}})}, 100},
		"some users": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{
			matched(rollout.Match{Headers: []rollout.NamedMatch{{Name: "x-staff"}}}), weight(5)}, 5},
		"a copy": {&rollout.Traffic{MaxWeight: 100}, []rollout.Step{
			{Route: &rollout.ManagedRoute{Mirror: new(10), Matches: []rollout.Match{{Path: &rollout.StringMatch{Prefix: "/"}}}}}, weight(5)}, 5},
	} {
		compare.CheckNamed(t, name, c.want, policy.FirstWeight(rollout.Spec{Canary: &rollout.Canary{Traffic: c.traffic, Steps: c.steps}}))
	}
}

// TestDuration checks that the duration is the sum of all pauses and experiments that have a duration.
func TestDuration(t *testing.T) {
	minute := func(n int) *time.Duration { return new(time.Duration(n) * time.Minute) }
	steps := []rollout.Step{{Pause: &rollout.Pause{Duration: minute(1)}}, {Pause: &rollout.Pause{}},
		{Experiment: &rollout.Experiment{Duration: minute(4)}}, {Experiment: &rollout.Experiment{}}, {}}
	compare.Check(t, 5*time.Minute, policy.Duration(rollout.Spec{Canary: &rollout.Canary{Steps: steps}}))

	all := &rollout.Experiment{Duration: minute(4), Templates: []rollout.ExperimentTemplate{{SpecRef: rollout.SpecCanary, Weight: 60}}}
	steps = []rollout.Step{{SetWeight: new(40)}, {Pause: &rollout.Pause{Duration: minute(1)}}, {Experiment: all}}
	spec := rollout.Spec{Canary: &rollout.Canary{Steps: steps, Traffic: &rollout.Traffic{MaxWeight: 100}}}
	compare.CheckNamed(t, "an experiment with the rest of the users", time.Minute, policy.Duration(spec))
}

// TestRulesByAuthor checks that a rule by author applies only to matching and unknown authors, in addition to the rules for all authors.
func TestRulesByAuthor(t *testing.T) {
	const bot, ann = "renovate[bot] <r@example.com>", "Ann <ann@example.com>"
	rules := parsed(t, ", rollouts: {minDuration: 10m, byAuthor: [{authors: ['*[bot]'], minDuration: 30m}, "+
		"{authors: ['*[bot]', dee@*], requireAnalysis: true}, {authors: [carl@*], mayPromote: false}]}")
	const fix = "let a person commit the change, or ask for a change of the rule in policy.yaml"
	tooShort := "apps/shop/app.yaml: project web, rule rollouts.byAuthor[0].minDuration: before all users have the new version, a " +
		"release pauses for only 20m0s, less than 30m0s, and the author is " + bot + " (Deployment/shop/web); lengthen the pauses that " +
		"have a duration (other pauses do not count), " + fix
	unmeasured := func(author string) string {
		return "apps/shop/app.yaml: project web, rule rollouts.byAuthor[1].requireAnalysis: no metric could stop a release before all " +
			"users have the new version, and the author is " + author + " (Deployment/shop/web); add an analysis that can fail before " +
			"all users have the new version, and is not a dry run, " + fix
	}
	const short, long = "{setWeight: 5}, {pause: {duration: 20m}}", "{setWeight: 5}, HALF-HOUR"
	for name, tt := range map[string]struct{ author, steps, want string }{
		"a short release of a bot":           {bot, short + ", JUDGE", tooShort},
		"one without an analysis":            {bot, long, unmeasured(bot)},
		"a long release with an analysis":    {bot, long + ", JUDGE", ""},
		"a person's short release":           {ann, short, ""},
		"another author without analysis":    {"Dee <dee@example.com>", short, unmeasured("Dee <dee@example.com>")},
		"another author with analysis":       {"Dee <dee@example.com>", short + ", JUDGE", ""},
		"an author who may only not promote": {"Carl <carl@example.com>", short, ""},
		"no author, as in a plan":            {"", short, ""},
		"an unknown author":                  {rollout.UnknownAuthor, long, unmeasured("unknown")},
	} {
		t.Run(name, func(t *testing.T) {
			tree, r := rendered(t, staged(steps(tt.steps)))
			if err := policy.Check(tree, r, rules, "gitrollout"); err != nil {
				t.Errorf("by the rules for all: %v", err)
			}
			err := policy.CheckAuthor(tree, r, tt.author, rules)
			isRefused := err != nil && err.Error() == tt.want && rollout.ReasonOf(err) == rollout.HeldPolicy
			if tt.want == "" && err != nil || tt.want != "" && !isRefused {
				t.Errorf("\n got: %v\nwant: %s", err, tt.want)
			}
			if err := policy.CheckAuthor(tree, r, tt.author, nil); err != nil {
				t.Errorf("without a policy: %v", err)
			}
		})
	}
	compare.Contains(t, fmt.Sprint(judged(t, rules, staged(steps("{setWeight: 5}")))), "rule rollouts.minDuration:", "less than 10m0s")
}
