package render_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

var fileBlock = regexp.MustCompile("(?ms)^```yaml\n# (\\S+\\.yaml)\n(.*?)^```$")

// TestComingFrom checks that the examples in the pages for users of other tools render. Each YAML block that begins with a path in a
// comment is a file of the page's example repository.
func TestComingFrom(t *testing.T) {
	want := map[string]string{
		"coming-from-flagger.md":         "podinfo: podinfo 25 pause 50 pause pause, nginx, 1 metric",
		"coming-from-kruise-rollouts.md": "echo: echo 20 pause 50 pause",
		"coming-from-flux.md":            "podinfo: podinfo 25 pause",
		"coming-from-argo-cd.md":         "guestbook: guestbook switch of guestbook",
	}
	pages, err := filepath.Glob("../docs/coming-from-*.md")
	must(t, err)
	if len(pages) != len(want)+1 { // the page about Argo Rollouts has a separate corpus
		t.Errorf("pages %q: each has an example, and its line here", pages)
	}
	for page, summary := range want {
		t.Run(page, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("../docs", page))
			must(t, err)
			files := map[string]string{}
			for _, m := range fileBlock.FindAllStringSubmatch(string(data), -1) {
				files[m[1]] = m[2]
			}
			compare.Check(t, summary, summarize(t, files))
		})
	}
}

func summarize(t *testing.T, files map[string]string) string {
	t.Helper()
	const file = ".gitrollout/prod/config.yaml"
	config, err := rollout.ParseConfig(file, []byte(files[file]))
	must(t, err)
	apps, err := render.FindApps(newTree(files), config)
	must(t, err)
	var all []string
	for _, app := range apps {
		built := mustRender(t, render.New(render.InProcess{CheckProvider: provider.Check}), files, app)
		compare.CheckNamed(t, app.Name+": warnings", []string(nil), built.Warnings)
		text := app.Name + ":"
		for _, spec := range built.Specs {
			text += " " + spec.Workload.Name
			if spec.BlueGreen != nil {
				text += " switch of " + spec.BlueGreen.ActiveService
				continue
			}
			for _, step := range spec.Canary.Steps {
				if step.SetWeight != nil {
					text += fmt.Sprintf(" %d", *step.SetWeight)
				} else if step.Pause != nil {
					text += " pause"
				}
			}
			if spec.Canary.Traffic != nil {
				text += ", " + spec.Canary.Traffic.Routers[0].Kind
			}
			if spec.Canary.Analysis != nil {
				text += fmt.Sprintf(", %d metric", len(spec.Canary.Analysis.Metrics))
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
