package render

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
)

// checkPage compares a page of the reference with what the code says.
func checkPage(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the code says (-want +got), write it anew with -update:\n%s", page, diff)
	}
}

// fieldGroups are the mappings of a Rollout document, in the order of the page.
func fieldGroups() []struct {
	path  string
	rules map[string]fieldRule
} {
	return []struct {
		path  string
		rules map[string]fieldRule
	}{
		{"spec", specFields(true)},
		{"spec.workloadRef", workloadRefFields},
		{"spec.rollbackWindow", rollbackWindowFields},
		{"spec.analysis", analysisHistoryFields},
		{"spec.strategy", strategyFields},
		{"spec.strategy.canary", canaryFields},
		{"spec.strategy.canary.steps[]", stepFields},
		{"….steps[].pause", pauseFields},
		{"….steps[].setCanaryScale", canaryScaleFields},
		{"….steps[].setHeaderRoute", headerRouteFields},
		{"….steps[].setHeaderRoute.match[]", headerMatchFields},
		{"….steps[].setMirrorRoute", mirrorRouteFields},
		{"….steps[].setMirrorRoute.match[]", mirrorMatchFields},
		{"….steps[].match[]", matchFields},
		{"….match[].headers[], cookies[], queryParams[]", namedMatchFields},
		{"….match[].path, method", textMatchFields},
		{"….steps[].analysis, blueGreen.prePromotionAnalysis, postPromotionAnalysis", stepAnalysisFields},
		{"….canary.analysis", analysisFields},
		{"….analysis.templates[]", templateRefFields},
		{"….analysis.args[]", argFields},
		{"….analysis.args[].valueFrom", valueFromFields},
		{"….analysis.args[].valueFrom.fieldRef", fieldRefFields},
		{"….analysis.dryRun[]", dryRunFields},
		{"….analysis.measurementRetention[]", retentionFields},
		{"….steps[].experiment", experimentFields},
		{"….experiment.templates[]", experimentTemplateFields},
		{"….experiment.templates[].metadata", experimentMetadataFields},
		{"….experiment.templates[].selector", experimentSelectorFields},
		{"….experiment.templates[].service", experimentServiceFields},
		{"….experiment.analyses[]", experimentAnalysisFields},
		{"….canary.trafficRouting", trafficFields},
		{"….trafficRouting.managedRoutes[]", managedRouteFields},
		{"….trafficRouting.sticky", stickyFields},
		{"….trafficRouting.plugins", pluginFields},
		{"….canary.pingPong", pingPongFields},
		{"spec.strategy.blueGreen", blueGreenFields},
	}
}

// supportText says what is done with a field.
func supportText(r fieldRule) string {
	switch r.support {
	case notYet:
		return "refused: not supported yet"
	case refused:
		return "refused"
	case ignored:
		return "ignored, with a warning"
	default:
		return "read"
	}
}

func TestFieldsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The fields of a Rollout

<!-- Written by go test ./render -run TestFieldsPage -update. -->

Every field that is known of a ` + "`Rollout`" + ` document, of ` + "`argoproj.io/v1alpha1`" + ` or ` + "`gitrollout.dev/v1alpha1`" + `, and
what is done with it. Any other field is an error that names the nearest known one. What the
fields mean is in [Writing a Rollout](../writing-a-rollout.md), [Blue-green](../blue-green.md),
[Routing requests](../traffic.md), which has each router's own fields, and
[Analysis](../analysis.md).

| field | what is done with it | instead, or why |
|---|---|---|
`)
	seen := map[string]bool{}
	for _, g := range fieldGroups() {
		for _, name := range slices.Sorted(maps.Keys(g.rules)) {
			seen[name] = true
			fmt.Fprintf(&b, "| `%s.%s` | %s | %s |\n", g.path, name, supportText(g.rules[name]), g.rules[name].note)
		}
	}
	b.WriteString("\n`spec.template` and `spec.selector` are read of an `argoproj.io` Rollout only; in a `gitrollout.dev`\n" +
		"Rollout the pod template is that of the Deployment which `spec.workloadRef` names.\n")
	source, err := os.ReadFile("fields.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"([a-zA-Z]+)": +\{`).FindAllStringSubmatch(string(source), -1) {
		if !seen[m[1]] {
			t.Errorf("fields.go has %s, which is in none of the page's groups", m[1])
		}
	}
	checkPage(t, "../docs/reference/fields.md", b.String())
}

// about is the object that a message is about. The same message about another one
// is the same.
var about = regexp.MustCompile(` \((Rollout|Deployment|AnalysisTemplate|ClusterAnalysisTemplate|Service|Ingress|[A-Z][A-Za-z]+)/[^)]*\)$`)

func TestErrorsPage(t *testing.T) {
	titles := map[string]string{
		"kustomize": "Kustomizations and objects", "rollout": "Rollouts and Deployments", "traffic": "Routing requests", "analysis": "Analysis",
	}
	var b strings.Builder
	b.WriteString(`# Errors and what to do about them

<!-- Written by go test ./render -run TestErrorsPage -update. -->

What is wrong in a repository holds the app that it concerns: what runs goes on, and ` + "`gitrollout get`" + `,
` + "`gitrollout validate`" + ` and an Event say file, field, value and what to do. These are the messages of all
inputs that the tests reject, each with an example of a field and a value. Errors of other kinds are in
[Troubleshooting](../troubleshooting.md).
`)
	for _, folder := range []string{"kustomize", "rollout", "traffic", "analysis"} {
		rows := map[string]bool{}
		for _, err := range rejected(t, folder) {
			msg := err.Msg
			if m := about.FindStringIndex(msg); m != nil {
				msg = msg[:m[0]]
			}
			field := ""
			if err.Field != "" {
				field = "`" + err.Field + "`"
			}
			rows[fmt.Sprintf("| %s | %s | %s |\n", cell(field), cell(msg), cell(err.Fix))] = true
		}
		fmt.Fprintf(&b, "\n## %s\n\n| field | message | what to do |\n|---|---|---|\n", titles[folder])
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			b.WriteString(row)
		}
	}
	checkPage(t, "../docs/reference/errors.md", b.String())
}

// cell keeps a text within its cell, and from being read as Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "](", "] (", "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}

// rejected renders the inputs of a folder of testdata/invalid.
func rejected(t *testing.T, folder string) []*rollout.InvalidError {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata/invalid", folder, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	base := map[string]string{}
	if file := filepath.Join("testdata/invalid", folder, "base.txtar"); slices.Contains(files, file) {
		base = archiveFiles(parseArchive(t, file))
	}
	var all []*rollout.InvalidError
	for _, file := range files {
		if filepath.Base(file) == "base.txtar" {
			continue
		}
		repo := maps.Clone(base)
		maps.Copy(repo, archiveFiles(parseArchive(t, file)))
		_, err := New(CheckProviders(provider.Check)).Render(newTree(repo), rollout.App{Name: "demo", Namespace: "shop"}, rollout.Commit{})
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("%s: error %v, want an InvalidError", file, err)
		}
		all = append(all, invalid)
	}
	return all
}
