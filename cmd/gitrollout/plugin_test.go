package main

import (
	"os"
	"os/exec"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// TestPlugin checks the kubectl plugin and its completion with a real kubectl.
func TestPlugin(t *testing.T) {
	kubectl := testcluster.Kubectl(t)
	repo := fleetRepo(t, 12)
	call := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(kubectl, args...)
		cmd.Env = append(os.Environ(), "GITROLLOUT_REPO="+repo.Bare, "GITROLLOUT_CLUSTER=prod", "KUBECONFIG=/nowhere")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %v: %v", args, err)
		}
		return string(out)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"gitrollout", "get", "--help"}, []string{"  kubectl gitrollout get [APP] [flags]", "  kubectl gitrollout get shop -w\n"}},
		{[]string{"gitrollout", "--help"}, []string{"kubectl gitrollout [command] --help"}},
		{[]string{"gitrollout", "get", "app-0000"}, []string{"‖ app-0000  Paused", "kubectl gitrollout promote app-0000\n"}},
		{[]string{"__complete", "gitrollout", "get", "app-001"}, []string{"app-0010\n", "app-0011\n"}},
		{[]string{"__complete", "gitrollout", "pro"}, []string{"promote\t"}},
	} {
		compare.Contains(t, call(c.args...), c.want...)
	}
}
