package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// readmeHelpers is shell code before the commands of README.md. The shell function await replaces `gitrollout get -w`. It waits for a phase
// of the app, and saves the Deployment. `kubectl delete` does not wait, because another test's broken CRD could block the deletion of all
// namespaces.
const readmeHelpers = `set -em
kubectl() { [ "$1" != delete ] || set -- "$@" --wait=false; command kubectl "$@"; }
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
await() {
	until gitrollout get shop -o json 2>/dev/null | grep -q "\"phase\": \"$1\""; do sleep 0.2; done
	[ "$1" != Paused ] || until git ls-remote --exit-code -q origin gitrollout/promote/demo/shop >/dev/null; do sleep 0.2; done
	kubectl -n example-canary get deployment shop -o json >"$HOME/$1.json"
}
`

// TestReadme runs the shell blocks of README.md in their order. It also runs the health check of deploy/argocd on the Deployment as saved
// at the pause and after the release.
func TestReadme(t *testing.T) {
	t.Parallel()
	root, err := testbin.Root()
	must(t, err)
	program, err := binary()
	must(t, err)
	page, script := readText(t, filepath.Join(root, "README.md")), ""
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		script += block[1]
	}
	watch := regexp.MustCompile(`(?m)^gitrollout get shop -w +# until it is (\w+).*$`)
	if n := len(watch.FindAllString(script, -1)); n != 3 {
		t.Fatalf("README.md watches a release %d times, want 3:\n%s", n, script)
	}
	home := t.TempDir()
	script = strings.ReplaceAll(watch.ReplaceAllString(script, "await $1"), "/tmp/", home+"/")

	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", readmeHelpers+script)
	path := strings.Join([]string{filepath.Dir(program), filepath.Join(root, "bin"), os.Getenv("PATH")}, ":")
	cmd.Dir, cmd.WaitDelay = root, time.Second // the background commands outlive the shell
	cmd.Env = append(gittest.Env(), "HOME="+home, "PATH="+path, "KUBECONFIG="+testcluster.Shared(t).Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		log, _ := os.ReadFile(filepath.Join(home, "gitrollout.log"))
		t.Fatalf("%v\n%s\ngitrollout's log:\n%s", err, out, log)
	}

	for phase, want := range map[string]string{"Paused": "Suspended", "Healthy": "Healthy"} {
		deployment := readText(t, filepath.Join(home, phase+".json"))
		if got := argoHealth(t, root, deployment); got != want {
			t.Errorf("Argo CD shows the Deployment of a %s release as %s, want %s:\n%s", phase, got, want, deployment)
		}
	}
}

func TestArgoHealth(t *testing.T) {
	t.Parallel()
	root, err := testbin.Root()
	must(t, err)
	const release = `{"gitrollout.dev/status": "step 1 of 3"}`
	for name, tt := range map[string]struct{ annotations, spec, status, want string }{
		"AllAvailable":    {`{}`, `{"replicas": 2}`, `{"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}`, "Healthy"},
		"DefaultReplicas": {`{}`, `{}`, `{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}`, "Healthy"},
		"NoReplicas":      {`{}`, `{"replicas": 0}`, `{}`, "Healthy"},
		"ScaledToNone":    {`{}`, `{"replicas": 0}`, `{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}`, "Healthy"},
		"Unavailable":     {`{}`, `{"replicas": 2}`, `{"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}`, "Progressing"},
		"OldPodIsLeft":    {`{}`, `{"replicas": 2}`, `{"replicas": 3, "updatedReplicas": 2, "availableReplicas": 3}`, "Progressing"},
		"Paused":          {`{}`, `{"replicas": 1, "paused": true}`, `{}`, "Suspended"},
		"Deadline": {`{}`, `{"replicas": 1}`,
			`{"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "late"}]}`, "Degraded"},
		"Unseen":           {`{}`, `{"replicas": 0}`, `{"observedGeneration": 1}`, "Progressing"},
		"AtAStep":          {release, `{"replicas": 2}`, `{"replicas": 2, "readyReplicas": 2}`, "Suspended"},
		"AtAStepWithSurge": {release, `{"replicas": 2}`, `{"replicas": 3, "readyReplicas": 2}`, "Progressing"},
		"AtAStepUnready":   {release, `{"replicas": 2}`, `{"replicas": 2, "readyReplicas": 1}`, "Progressing"},
		"AtAStepWithNone":  {release, `{"replicas": 0}`, `{}`, "Suspended"},
	} {
		status := map[string]any{"observedGeneration": 2}
		must(t, json.Unmarshal([]byte(tt.status), &status))
		text, err := json.Marshal(status)
		must(t, err)
		deployment := fmt.Sprintf(`{"metadata": {"generation": 2, "annotations": %s}, "spec": %s, "status": %s}`, tt.annotations, tt.spec, text)
		if got := argoHealth(t, root, deployment); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// argoHealth returns the status that deploy/argocd/health.yaml computes for a Deployment in JSON.
func argoHealth(t *testing.T, root, deployment string) string {
	t.Helper()
	var settings struct{ Data map[string]string }
	must(t, yaml.Unmarshal([]byte(readText(t, filepath.Join(root, "deploy", "argocd", "health.yaml"))), &settings))
	var fields map[string]any
	must(t, json.Unmarshal([]byte(deployment), &fields))
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", luaValue(state, fields))
	must(t, state.DoString(settings.Data["resource.customizations.health.apps_Deployment"]))
	return state.Get(-1).(*lua.LTable).RawGetString("status").String()
}

// luaValue converts a JSON value to Lua.
func luaValue(state *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, field := range v {
			table.RawSetString(name, luaValue(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range v {
			table.Append(luaValue(state, item))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	default:
		return lua.LNil
	}
}
