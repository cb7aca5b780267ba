package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Test packages that start together find no program, and build it once.
func TestMissingProgramIsBuiltOnce(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "internal", "localcluster")
	if err := os.MkdirAll(module, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := program{name: "x", build: []string{"."}, takes: "no time"}
	var all sync.WaitGroup
	infos := make([]os.FileInfo, 3)
	for i := range infos {
		all.Add(1)
		go func() {
			defer all.Done()
			path, err := ensure(root, p)
			if err != nil {
				t.Error(err)
				return
			}
			infos[i], _ = os.Stat(path)
		}()
	}
	all.Wait()
	for _, info := range infos[1:] {
		if info == nil || !os.SameFile(info, infos[0]) {
			t.Error("it was built more than once")
		}
	}
}

func TestProgramThatDoesNotBuildIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "internal", "localcluster"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ensure(root, program{name: "x", build: []string{"."}}); err == nil || !strings.HasPrefix(err.Error(), "build x: ") {
		t.Errorf("error is %v", err)
	}
}

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
