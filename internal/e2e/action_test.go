package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestAction runs the script of action.yml on a release that is downloaded: it plans with a good one, and runs nothing of
// one that somebody else has signed, or whose archive is another.
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
	if err := yaml.Unmarshal([]byte(readText(t, "../../action.yml")), &action); err != nil {
		t.Fatal(err)
	}
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
	served := t.TempDir()
	if err := os.CopyFS(served, os.DirFS(releaseOf(t))); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(served)))
	t.Cleanup(server.Close)
	j := &planJob{T: t, dir: t.TempDir()}
	j.git("init", "-q", "-b", "main")
	j.git("init", "-q", "--bare", filepath.Join(served, "origin.git"))
	j.git("remote", "add", "origin", filepath.Join(served, "origin.git"))
	j.push("main", "v1")
	j.push("change", "v2")
	run := func(signers string) (string, error) {
		cmd := exec.Command("bash", "-c", step.Run)
		cmd.Dir = j.dir
		cmd.Env = append(gittest.Env(), "DOWNLOADS="+server.URL, "VERSION="+releasedVersion, "SIGNERS="+signers, "BASE=main", "CLUSTER=", "COMMENT=false")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	good := "release@example.com " + readText(t, releaseKey()+".pub")
	if out, err := run(good); err != nil || !strings.Contains(out, "0 errors") || !strings.Contains(out, "shop:v2") {
		t.Errorf("a good release: %v\n%s", err, out)
	}
	other := filepath.Join(t.TempDir(), "other")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := run("release@example.com " + readText(t, other+".pub")); err == nil || strings.Contains(out, "0 errors") {
		t.Errorf("a release that somebody else has signed was run:\n%s", out)
	}
	archives, err := filepath.Glob(filepath.Join(served, "*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	if err := os.WriteFile(archives[0], []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(good); err == nil || strings.Contains(out, "0 errors") {
		t.Errorf("another archive was run:\n%s", out)
	}
}
