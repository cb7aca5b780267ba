package worker

import (
	"os"

	"gitrollout.dev/gitrollout/rollout"
)

// ErrClosed is the error of builds in a closed Pool.
var ErrClosed = errClosed

// Resting returns the processes of idle workers, which tests kill or suspend.
func (p *Pool) Resting() (all []*os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		all = append(all, w.cmd.Process)
	}
	return all
}

// Orphan starts an endless build, closes the worker's input and waits for the worker's end.
func (p *Pool) Orphan() error {
	w, err := p.start(256 << 20)
	if err != nil {
		return err
	}
	defer w.end()
	return send(w.in, order{App: &rollout.App{Name: "spins"}})
}
