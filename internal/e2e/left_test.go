package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// adoptOrphans makes this process the parent of orphaned processes of these tests, such as workers.
func adoptOrphans() {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// leftRunning waits up to ten seconds until no gitrollout process is a child of this process. It kills the remaining
// processes, and returns their PIDs and command lines.
func leftRunning() (all []string) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(glance) {
		left := programs()
		if len(left) > 0 && time.Now().Before(deadline) {
			continue
		}
		for pid, args := range left {
			all = append(all, fmt.Sprintf("%d %s", pid, args))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		slices.Sort(all)
		return all
	}
}

// programs returns the command lines of this process's children that run gitrollout, by PID.
func programs() map[int]string {
	path, err := binary()
	if err != nil {
		return nil
	}
	found := map[int]string{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range folders {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // the process has ended
		}
		_, after, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		fields := strings.Fields(after) // state and parent
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		program, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || program != path && filepath.Base(program) != "gitrollout" {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		found[pid] = strings.ReplaceAll(strings.TrimRight(string(args), "\x00"), "\x00", " ")
	}
	return found
}

// TestWhatIsLeftRunningIsFound checks that programs() returns an orphaned worker until the worker ends.
func TestWhatIsLeftRunningIsFound(t *testing.T) {
	path, err := binary()
	must(t, err)
	reader, writer, err := os.Pipe() // a worker's input
	must(t, err)
	defer reader.Close()
	orphan := exec.Command("sh", "-c", `"$0" render-worker 536870912 <&3 >/dev/null 2>&1 & echo $!`, path)
	orphan.ExtraFiles = []*os.File{reader}
	out, err := orphan.Output()
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	must(t, err)
	left := func() any { return programs() }
	eventually(t, "it is found", func() bool { return strings.Contains(programs()[pid], "render-worker") }, left)
	_ = writer.Close()
	eventually(t, "it has ended", func() bool { return programs()[pid] == "" }, left)
}
