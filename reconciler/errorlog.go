package reconciler

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"

	"gitrollout.dev/gitrollout/rollout"
)

// errorLog logs a problem only once, although each pass finds the problem again.
type errorLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]string // the last logged text, by subject
}

func (c *errorLog) about(what string, err error) {
	if err == nil {
		c.mu.Lock()
		delete(c.said, what)
		c.mu.Unlock()
		return
	}
	if c.isNew(what, err.Error()) {
		c.log.Error("pass failed", "of", what, "error", err)
	}
}

func (c *errorLog) forget(app string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.said, "app "+app)
	delete(c.said, "panic of "+app)
	delete(c.said, "hook of "+app)
}

// isNew records a problem. It reports whether the problem differs from the subject's last problem.
func (c *errorLog) isNew(what, problem string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, said := c.said[what]
	c.note(what, problem)
	return !said || was != problem
}

func (c *errorLog) before(what, now string, isOver bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The result is the subject's last text. If there is none, the result is the new text.
	was := cmp.Or(c.said[what], now)
	if delete(c.said, what); !isOver {
		c.note(what, now)
	}
	return was
}

// note stores a text. The caller holds the lock.
func (c *errorLog) note(what, text string) {
	if c.said == nil {
		c.said = map[string]string{}
	}
	c.said[what] = text
}

func (c *errorLog) ofPanic(app string, problem any, stack []byte) {
	if c.isNew("panic of "+app, fmt.Sprint(problem)) {
		c.log.Error("panic", "app", app, "problem", fmt.Sprint(problem), "stack", string(stack))
	}
}

// panicked returns the error of an app after a panic in code that handles the app.
func panicked(what string, problem any) *rollout.InvalidError {
	return &rollout.InvalidError{
		Msg: fmt.Sprintf("%s: the program panicked: %v", what, problem),
		Fix: "report the stack, which is in the log, and go back to the previous commit",
	}
}
