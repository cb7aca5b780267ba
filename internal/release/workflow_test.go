package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflowCallsMake holds that CI makes a release as anybody can, by make alone, with the variables that make knows.
func TestWorkflowCallsMake(t *testing.T) {
	data, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Env   map[string]string `json:"env"`
			Steps []struct {
				Run string `json:"run"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	job, allowed := workflow.Jobs["release"], regexp.MustCompile(`^(make (release|push)|gh release create .*|install .*"\$KEY")$`)
	var made []string
	for _, s := range job.Steps {
		if s.Run != "" && !allowed.MatchString(s.Run) {
			t.Errorf("a step runs %q, which nobody can repeat", s.Run)
		}
		made = append(made, s.Run)
	}
	if !slices.Contains(made, "make release") || !slices.Contains(made, "make push") {
		t.Errorf("the steps are %q", made)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"VERSION", "IMAGE", "DOWNLOADS", "KEY"} {
		if job.Env[name] == "" || !regexp.MustCompile(`\$\(`+name+`\)`).Match(makefile) {
			t.Errorf("%s is not set by the workflow, or not used by make", name)
		}
	}
}
