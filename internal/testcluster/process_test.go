package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClusterThatDoesNotAnswerIsAnError(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kc")
	text := `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(kubeconfig); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error is %v", err)
	}
}
