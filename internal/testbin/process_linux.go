package testbin

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a program that a test has started.
type Process struct {
	Output
	process *os.Process
	ended   chan struct{} // closed when the program has ended
	err     error         // the program's error, valid after its end
}

// Start starts a program, which ends with the test process. The kernel kills the program when the starting
// thread ends, so Start locks a goroutine to this thread until the program has ended.
func Start(command *exec.Cmd) (*Process, error) {
	p := &Process{ended: make(chan struct{})}
	command.Stdout, command.Stderr = &p.Output, &p.Output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	p.process = command.Process
	return p, nil
}

// Await waits until the program responds to a request for a URL with 200.
func (p *Process) Await(url string, within time.Duration) error {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			return fmt.Errorf("it ended before it was ready: %w", p.err)
		default:
		}
		if res, err := http.Get(url); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return fmt.Errorf("it did not answer %s within %s", url, within)
}

// Stop terminates the program like the function Stop.
func (p *Process) Stop() { Stop(p.process, p.ended) }
