package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/simulate"
)

func simulated(t *testing.T, script string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), append([]string{"simulate"}, args...), strings.NewReader(script), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// TestExamplesAsScripts checks that all expectations in the simulator scripts of the examples are met.
func TestExamplesAsScripts(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts among the examples: %v", err)
	}
	for _, file := range files {
		code, out, errs := simulated(t, "", file, "--dir", filepath.Dir(file))
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", file, code, out, errs)
		}
	}
}

// TestAppsWaitForThemselves releases one app among several. The serials in the records of the other apps must not hold this release.
func TestAppsWaitForThemselves(t *testing.T) {
	code, out, errs := simulated(t, "start\npush shop=v2\n+10s\npush shop=v3\n+1m\n", "-", "--dir", "../../examples/several-apps")
	if code != 0 || strings.Contains(out, "serial") || !strings.Contains(out, "waits for promotion of v3") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

const canary = "../../examples/canary"

func TestSimulate(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   exitCode
		out    string
		errs   string
	}{
		"events are printed": {
			"start\npush v2\n", exitOK, "  commit shop step 2/4 pause\n" +
				"  expect Paused shop 2/4 pause (20%) at #1 | shop: 4 blue, 1 v2, shop-canary -> v2", "",
		},
		"a met expectation": {"start\npush v2\n  commit release v2\n  expect Paused | 4 blue, 1 v2\n", exitOK, "expect Paused", ""},
		"one that is not met": {
			"start\n  expect Healthy\npush v2\n  expect Healthy\n", exitFailed, "  FAILED line 4: expect Healthy\n",
			"1 expectation not met",
		},
		"an error that is not there": {
			"start\ngit down\n  error the API server does not answer\n", exitFailed, "FAILED line 3: error the API server", "",
		},
		"commits have an order": {
			"start\n  commit healthy\n  commit first deployment\n", exitFailed, "FAILED line 3: commit first deployment", "",
		},
		"Git is down": {
			"start\npush v2\ngit down\npromote\n  error Git does not answer\n  expect Paused\n" +
				"git up\n  expect 2 blue, 3 v2\n+3s\n  expect Healthy | 5 v2\n", exitOK, "", "",
		},
		"an abort needs no push": {"start\npush v2\nabort\n  expect Degraded | 5 blue\nrevert\n  expect Healthy\n", exitOK, "", ""},
		"an API server that is down": {
			"start\napi down\npush v2\n  error the API server does not answer\napi up\n+2m\n  expect Paused\n", exitOK, "", "",
		},
		"pods die": {
			"start\nslow blue 30s\nkill blue 2\n  expect Healthy | 5 blue (3 ready)\n+1m\n  expect Healthy | 5 blue\n", exitOK,
			"  expect Healthy at #0 | shop: 5 blue (3 ready)\n", "",
		},
		"pods that stay away": {
			"start\nnever blue\nkill blue 2\n+11m\n  expect Degraded | 5 blue (3 ready)\n", exitOK, "3 of 5 pods are ready", "",
		},
		"a crash moves nothing":   {"start\npush v2\ncrash\n  expect Paused | 4 blue, 1 v2\n", exitOK, "", ""},
		"an autoscaler is undone": {"start\nscale shop 10\n  expect 5 blue\n", exitOK, "", ""},
		"heal a later version":    {"start\nnever v2\nheal v2\npush v2\n  expect Paused\n", exitOK, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := simulated(t, c.script, "-", "--dir", canary)
			if exitCode(code) != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
				t.Errorf("exit code %d, want %d; output:\n%s\nerrors:\n%s", code, c.code, out, errs)
			}
		})
	}
}

// TestSimulateRefuses checks the errors for script commands that are invalid or impossible.
func TestSimulateRefuses(t *testing.T) {
	const notANumber = "is not a number of pods from "
	for script, want := range map[string]string{
		"start\nlaunch v2\n":           `line 2: "launch" is not a command`,
		"start\n  wants Healthy\n":     "begin with commit, expect or error",
		"  expect Healthy\n":           "line 1",
		"start\nmerge\n":               "there is no proposal for shop",
		"start\npromote\n":             "promote shop: no release is in flight",
		"start\nrevert\n":              "shop has had no other release yet",
		"start\nscale web 3\n":         "there are shop",
		"start\nmeasure nope Failed\n": `line 2: there is no metric "nope"; there are none`,
		"start\njob x fails\n":         `line 2: there is no Job of a hook "x"; there are none`,
		"start\nkill v9 1\n":           `line 2: there is no version with pods "v9"; there are blue`,
		"start\nheal v9\n":             `line 2: there is no version with pods "v9"; there are blue`,
		"start\nnever\n":               "line 2: never: name a version: write never v2, or slow v2 30s",
		"start\nkill blue -3\n":        `line 2: kill blue: "-3" ` + notANumber + "1 to 1000: write kill blue 5",
		"start\nkill blue 0\n":         `line 2: kill blue: "0" ` + notANumber + "1 to 1000: write kill blue 5",
		"start\nscale shop -1\n":       `line 2: scale shop: "-1" ` + notANumber + "0 to 1000: write scale shop 5",
		"start\nscale shop 99999999\n": `line 2: scale shop: "99999999" ` + notANumber + "0 to 1000",
		"start\nslow v2 -1s\n":         `line 2: slow v2: "-1s" is not a duration: write slow v2 30s`,
		"start\n+soon\n":               "write +30s",
		"start\npush files v2\n":       "the script has no file v2/",
	} {
		if code, _, errs := simulated(t, script, "-", "--dir", canary); exitCode(code) != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d, want %q in the errors:\n%s", script, code, want, errs)
		}
	}
}

// TestSimulateNames checks script commands that name a metric or the Job of a hook, and the errors for unknown names.
func TestSimulateNames(t *testing.T) {
	for script, want := range map[string]string{
		"start\nmeasure errors Failed\nmeasure stable:errors [1, 2]\n": "",
		"measure error Failed\n": `there is no metric "error"; there are errors`,
		"job migrate fails\n":    "",
		"job migrat fails\n":     `there is no Job of a hook "migrat"; there are migrate`,
	} {
		code, _, errs := simulated(t, named+"-- timeline --\n"+script, "-")
		if code != map[bool]int{true: 0, false: 2}[want == ""] || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", script, code, errs)
		}
	}
}

// web is a txtar archive of a repository with one app. Two constants, `named` and `archive`, begin with this text.
const web = `-- .gitrollout/test/config.yaml --
apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: apps/*
-- apps/web/kustomization.yaml --
resources: [web.yaml]
-- apps/web/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com:5000/web:v1"}]}
`

const named = web + `---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {gitrollout.dev/hook: before}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy: {canary: {steps: [{setWeight: 50}, {analysis: {templates: [{templateName: errors}]}}]}}
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec:
  metrics: [{name: errors, successCondition: 'result == 1', provider: {web: {url: 'https://example.com'}}}]
`

// archive is a txtar archive with a simulator script and the files of a repository.
const archive = web + `-- v2/apps/web/kustomization.yaml --
resources: [web.yaml, config.yaml]
-- v2/apps/web/config.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
-- timeline --
start
push v7
push files v2
`

func TestSimulateAnArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "release.txtar")
	must(t, os.WriteFile(file, []byte(archive), 0o644))
	code, out, errs := simulated(t, "", file, "-o", "json")
	var got simulate.Timeline
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || len(got.Events) != 3 {
		t.Fatalf("exit code %d, error %v: %s%s", code, err, out, errs)
	}
	if e := got.Events[1]; len(e.Status) != 1 || e.Status[0] != "Healthy at #1 | web: 2 v7" {
		t.Errorf("after push v7: %+v", e)
	}
	if code, _, errs := simulated(t, "", file, "--update"); code != 0 {
		t.Fatal(errs)
	}
	kept, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(kept), "push v7\n  commit web follows #1\n  expect Healthy at #1 | web: 2 v7\n") {
		t.Errorf("the file is %s, %v", kept, err)
	}
	if code, out, errs := simulated(t, "", file); code != 0 || !strings.HasSuffix(string(kept), out) {
		t.Errorf("exit code %d, played again:\n%s%s", code, out, errs)
	}
}

// TestUpdateReplacesUnmetExpectations runs a script with an unmet expectation of each kind. The next run must accept the script that
// --update has written.
func TestUpdateReplacesUnmetExpectations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "release.txtar")
	unmet := "push v7\n  expect Paused\n  commit nothing\n  error nothing\n"
	must(t, os.WriteFile(file, []byte(strings.Replace(archive, "push v7\n", unmet, 1)), 0o644))
	for _, args := range [][]string{{file, "--update"}, {file}} {
		if code, out, errs := simulated(t, "", args...); code != 0 {
			t.Errorf("simulate %v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	kept, err := os.ReadFile(file)
	must(t, err)
	if script := string(kept); strings.Contains(script, "Paused") || !strings.Contains(script, "  expect Healthy at #1 | web: 2 v7\n") {
		t.Errorf("the file is %s", script)
	}
}

// TestSimulateARefusedApp checks the error if a script pushes a version that cannot be rendered.
func TestSimulateARefusedApp(t *testing.T) {
	script := strings.Replace(archive, "replicas: 2", "replicas: two", 1)
	want := "line 2: push v7: apps/web/web.yaml:5: spec.replicas: "
	if code, _, errs := simulated(t, script, "-"); code != 2 || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, want 2, errors:\n%s", code, errs)
	}
}

// TestScriptsOfTimelines runs simulator scripts with windows and freezes, all kinds of workloads, and commands of users. Each file in
// testdata/cases has one situation.
func TestScriptsOfTimelines(t *testing.T) {
	cases, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range append(cases, "testdata/windows.txtar", "testdata/moves.txtar", "testdata/versions.txtar",
		"testdata/emptied.txtar", "testdata/chart.txtar", "testdata/two.txtar", "testdata/hooks.txtar",
		"testdata/kinds.txtar", "testdata/documents.txtar") {
		if code, out, errs := simulated(t, "", file); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", file, code, out, errs)
		}
	}
}
