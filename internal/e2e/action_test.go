package e2e

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestAction runs the script of action.yml, which downloads a release of gitrollout. With a valid release, the script
// prints the plan. If the signature is from another key, or the archive was changed, the script does not run the program.
func TestAction(t *testing.T) {
	t.Parallel()
	var action struct {
		Inputs map[string]any
		Runs   struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	must(t, yaml.Unmarshal([]byte(readText(t, "../../action.yml")), &action))
	if len(action.Runs.Steps) != 1 {
		t.Fatalf("the action has %d steps", len(action.Runs.Steps))
	}
	step := action.Runs.Steps[0]
	for name, value := range step.Env {
		input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
		if _, known := action.Inputs[input]; !known && value != "${{ github.token }}" {
			t.Errorf("%s is %s, which is no input", name, value)
		}
	}
	checkComponent(t, step.Run)
	served := t.TempDir()
	must(t, os.CopyFS(served, os.DirFS(releaseOf(t))))
	server := httptest.NewServer(http.FileServer(http.Dir(served)))
	t.Cleanup(server.Close)
	c := newClone(t, filepath.Join(served, "origin.git"))
	c.git("init", "-q", "--bare", filepath.Join(served, "origin.git"))
	j := &planJob{clone: c}
	j.pushVersion("main", "v1")
	j.pushVersion("change", "v2")
	run := func(signers string) (string, error) {
		cmd := exec.Command("bash", "-c", step.Run)
		cmd.Dir = j.dir
		cmd.Env = append(gittest.Env(), "DOWNLOADS="+server.URL, "VERSION="+releasedVersion, "SIGNERS="+signers, "BASE=main",
			"CLUSTER=", "COMMENT=false")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	good := "release@example.com " + readText(t, releaseKey()+".pub")
	if out, err := run(good); err != nil || !strings.Contains(out, "0 errors") || !strings.Contains(out, "shop:v2") {
		t.Errorf("a good release: %v\n%s", err, out)
	}
	other := readText(t, newKey(t, "")+".pub")
	if out, err := run("release@example.com " + other); err == nil || strings.Contains(out, "0 errors") {
		t.Errorf("a release signed with another key was run:\n%s", out)
	}
	archives, err := filepath.Glob(filepath.Join(served, "*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	must(t, os.WriteFile(archives[0], []byte("another"), 0o600))
	if out, err := run(good); err == nil || strings.Contains(out, "0 errors") {
		t.Errorf("another archive was run:\n%s", out)
	}
}

// checkComponent checks that the GitLab template deploy/gitlab/plan.yml is valid, and that its job runs the script of action.yml.
func checkComponent(t *testing.T, script string) {
	t.Helper()
	text := readText(t, "../../deploy/gitlab/plan.yml")
	head, body, _ := strings.Cut(text, "\n---\n")
	var spec struct {
		Spec struct {
			Inputs map[string]map[string]any
		}
	}
	var jobs map[string]struct {
		Stage, Image string
		Rules        []map[string]string
		Variables    map[string]string
		Script       []string
	}
	must(t, errors.Join(yaml.UnmarshalStrict([]byte(head), &spec), yaml.UnmarshalStrict([]byte(body), &jobs)))
	job := jobs["gitrollout plan"]
	if len(jobs) != 1 || len(job.Script) != 1 || job.Script[0] != script || len(job.Rules) != 1 {
		t.Errorf("deploy/gitlab/plan.yml has %d jobs, and the script\n%s\nwant action.yml's script:\n%s", len(jobs), job.Script, script)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\[\[ inputs\.(\w+) \]\]`).FindAllStringSubmatch(body, -1) {
		used[m[1]] = true
	}
	for name := range used {
		if spec.Spec.Inputs[name] == nil {
			t.Errorf("the input %s is used, and is none", name)
		}
	}
	for name, input := range spec.Spec.Inputs {
		if !used[name] || input["description"] == nil {
			t.Errorf("the input %s is used: %t, and is described as %v", name, used[name], input["description"])
		}
	}
	for _, name := range regexp.MustCompile(`\$\{?([A-Z]+)\b`).FindAllStringSubmatch(script, -1) {
		if job.Variables[name[1]] == "" {
			t.Errorf("the script reads %s, which no variable of the template is", name[1])
		}
	}
}
