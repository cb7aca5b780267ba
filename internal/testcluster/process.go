package testcluster

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// readyWithin limits the start of a cluster. The limit is high, because test packages start clusters at the same time.
const readyWithin = 3 * time.Minute

// process is a localcluster that this test process started.
type process struct {
	kubeconfig string
	command    *exec.Cmd
}

// start runs localcluster with a temporary state folder, which localcluster removes at its end. localcluster
// ends at the latest with the test process.
func start(flags ...string) (*process, error) {
	binary, err := program()
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, append([]string{"--exit-with-parent"}, flags...)...)
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
			return nil, fmt.Errorf("%s ended before it was ready (%w): %s", binary, err, strings.TrimSpace(complaint.String()))
		}
		p.kubeconfig = path
		return p, nil
	case <-time.After(readyWithin):
		p.stop()
		return nil, fmt.Errorf("%s was not ready after %s: %s", binary, readyWithin, strings.TrimSpace(complaint.String()))
	}
}

// program returns the path of localcluster: the program that ProgramVariable names, or bin/localcluster.
func program() (string, error) {
	if path := os.Getenv(ProgramVariable); path != "" {
		return path, nil
	}
	return testbin.Ensure("localcluster", "more than five minutes")
}

// stop terminates the program.
func (p *process) stop() {
	ended := make(chan struct{})
	go func() {
		_ = p.command.Wait()
		close(ended)
	}()
	testbin.Stop(p.command.Process, ended)
}
