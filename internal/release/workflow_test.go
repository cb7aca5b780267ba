package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflowCallsMake checks that the workflow releases only with make and its variables, so that the release can be repeated elsewhere.
// One step cannot be repeated: between make release and make push, the workflow signs the checksums with its identity.
func TestWorkflowCallsMake(t *testing.T) {
	data, err := os.ReadFile("../../.github/workflows/release.yaml")
	must(t, err)
	var workflow struct {
		Jobs map[string]struct {
			Permissions map[string]string `json:"permissions"`
			Env         map[string]string `json:"env"`
			Steps       []struct {
				Run  string            `json:"run"`
				Uses string            `json:"uses"`
				With map[string]string `json:"with"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	must(t, yaml.Unmarshal(data, &workflow))
	job, allowed := workflow.Jobs["release"], regexp.MustCompile(`^(make (release|push)|gh release create .*|install .*"\$(KEY|BUNDLE)".*)$`)
	var made []string
	for _, s := range job.Steps {
		if s.Run != "" && !allowed.MatchString(s.Run) {
			t.Errorf("a step runs %q, which cannot be repeated elsewhere", s.Run)
		}
		if strings.HasPrefix(s.Uses, "actions/attest@") && s.With["subject-checksums"] == "dist/checksums.txt" {
			s.Run = "attest"
		}
		made = append(made, s.Run)
	}
	made = slices.DeleteFunc(made, func(step string) bool { return step != "attest" && !strings.HasPrefix(step, "make") })
	if want := []string{"make release", "attest", "make push"}; !slices.Equal(made, want) || job.Permissions["id-token"] != "write" {
		t.Errorf("the steps are %q, want %q, with the permissions %v", made, want, job.Permissions)
	}
	makefile, err := os.ReadFile("../../Makefile")
	must(t, err)
	for _, name := range []string{"VERSION", "IMAGE", "DOWNLOADS", "KEY"} {
		if job.Env[name] == "" || !regexp.MustCompile(`\$\(`+name+`\)`).Match(makefile) {
			t.Errorf("%s is not set by the workflow, or not used by make", name)
		}
	}
}
