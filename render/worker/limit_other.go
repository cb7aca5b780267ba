//go:build !linux

package worker

import (
	"runtime/debug"
	"time"
)

// Limit has Go collect garbage the more eagerly the nearer this process comes to that many bytes. Nothing holds it to
// them: that is for Linux only, and elsewhere the bound of time is what holds.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// cpu returns 0: the time of the CPU is bounded on Linux only.
func cpu() time.Duration { return 0 }
