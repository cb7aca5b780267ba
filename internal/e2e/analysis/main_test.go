package analysis

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"gitrollout.dev/gitrollout/internal/proxytest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(proxytest.Main(m))
}

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gitrollout-analysis-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gitrollout")
	build := exec.Command("go", "build", "-o", path, "gitrollout.dev/gitrollout/cmd/gitrollout")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build gitrollout: %w\n%s", err, out)
	}
	return path, nil
})
