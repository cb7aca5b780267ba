package reconciler

import (
	"fmt"
	"log/slog"
	"sync"

	"gitrollout.dev/gitrollout/rollout"
)

type errorLog struct {
	log  *slog.Logger
	said sync.Map
}

func (c *errorLog) about(what string, err error) {
	switch {
	case err == nil:
		c.said.Delete(what)
	case c.isNew(what, err.Error()):
		c.log.Error("pass failed", "of", what, "error", err)
	}
}

func (c *errorLog) forget(app string) {
	c.said.Delete("app " + app)
	c.said.Delete("panic of " + app)
	c.said.Delete("hook of " + app)
}

func (c *errorLog) isNew(subject, problem string) bool {
	was, _ := c.said.Swap(subject, problem)
	return was != problem
}

// before stores a new text about a subject. It returns the former text or, if there is none, the new text.
func (c *errorLog) before(what, now string, isOver bool) string {
	was, said := c.said.Swap(what, now)
	if isOver {
		c.said.Delete(what)
	}
	if !said {
		return now
	}
	return was.(string)
}

func (c *errorLog) ofPanic(app string, problem any, stack []byte) {
	if c.isNew("panic of "+app, fmt.Sprint(problem)) {
		c.log.Error("panic", "app", app, "problem", fmt.Sprint(problem), "stack", string(stack))
	}
}

func panicked(what string, problem any) *rollout.InvalidError {
	return &rollout.InvalidError{
		Msg: fmt.Sprintf("%s: the program panicked: %v", what, problem),
		Fix: "report the stack, which is in the log, and go back to the previous commit",
	}
}
