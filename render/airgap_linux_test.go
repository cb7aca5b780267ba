package render_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// alone is an environment variable that is set only in the child process, which has no network.
const alone = "GITROLLOUT_TEST_ALONE"

// TestNoNetworkIsNeeded runs the tests of the examples, of charts and of encrypted files in a child process without a
// network. In the child process, TestNoNetworkIsNeeded checks that no network interface is up.
func TestNoNetworkIsNeeded(t *testing.T) {
	if os.Getenv(alone) != "" {
		links, err := net.Interfaces()
		for _, l := range links {
			if l.Flags&net.FlagUp != 0 {
				t.Errorf("%s is up", l.Name)
			}
		}
		must(t, err)
		if c, err := net.Dial("tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("links %v, connection %v, error %v", links, c, err)
		}
		return
	}
	const tests = "^(TestNoNetworkIsNeeded|TestExamplesRender|TestHelmCharts|TestChartFolders|TestEncryptedFiles)$"
	cmd := exec.Command("/proc/self/exe", "-test.run="+tests, "-test.v")
	cmd.Env = append(os.Environ(), alone+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if id := os.Getuid(); id != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("no network namespace can be made here: %v", err)
	}
	if n := strings.Count(string(out), "--- PASS: TestExamplesRender/"); err != nil || n < 10 {
		t.Errorf("%d examples, %v:\n%s", n, err, out)
	}
}
