package testcluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// readyWithin is generous, because test packages start their clusters at the
// same time on machines with few cores.
const readyWithin = 3 * time.Minute

// process is a localcluster that this test process started.
type process struct {
	kubeconfig string
	command    *exec.Cmd
}

// start runs localcluster with a temporary state folder, which the program
// removes itself when it ends, and it ends when the test process is gone.
func start() (*process, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	binary, err := ensure(root, localcluster)
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, "--exit-with-parent")
	var complaint bytes.Buffer
	command.Stderr = &complaint
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "ready kubeconfig="); ok {
				path, _, _ := strings.Cut(rest, " ")
				ready <- path
			}
		}
	}()
	p := &process{command: command}
	select {
	case path, ok := <-ready:
		if !ok {
			err := command.Wait()
			return nil, fmt.Errorf("%s ended before it was ready (%v): %s", binary, err, strings.TrimSpace(complaint.String()))
		}
		p.kubeconfig = path
		return p, nil
	case <-time.After(readyWithin):
		p.stop()
		return nil, fmt.Errorf("%s was not ready after %s: %s", binary, readyWithin, strings.TrimSpace(complaint.String()))
	}
}

// stop ends the program and waits for it, at most for 20 seconds.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		_ = p.command.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = p.command.Process.Kill()
		<-ended
	}
}

// repositoryRoot is the nearest folder upwards with the product's go.mod.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module gitrollout.dev/gitrollout\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the repository: no folder above the test has gitrollout's go.mod")
		}
		dir = parent
	}
}

// program is one that is built from the nested module internal/localcluster.
type program struct {
	name  string   // below bin/
	build []string // what go build is given
	takes string   // how long, for the person who waits
}

var (
	localcluster = program{"localcluster", []string{"."}, "more than five minutes"}
	kubectl      = program{"kubectl", []string{"-ldflags", "-X k8s.io/component-base/version.gitVersion=v1.36.3", "k8s.io/kubernetes/cmd/kubectl"}, "a minute"}
)

// ensure returns the program below bin/ and builds it when it is missing. A
// file lock makes test packages that run at the same time build it once.
func ensure(root string, p program) (string, error) {
	binary := filepath.Join(root, "bin", p.name)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	lock, err := os.OpenFile(binary+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("build %s: lock %s: %w", p.name, lock.Name(), err)
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil // another test package built it meanwhile
	}
	fmt.Fprintf(os.Stderr, "building bin/%s from internal/localcluster: it takes %s the first time\n", p.name, p.takes)
	build := exec.Command("go", append([]string{"build", "-o", binary + ".new"}, p.build...)...)
	build.Dir = filepath.Join(root, "internal", "localcluster")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", p.name, err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(binary+".new", binary); err != nil {
		return "", fmt.Errorf("build %s: %w", p.name, err)
	}
	return binary, nil
}
