//go:build !linux

package worker

import (
	"runtime/debug"
	"time"
)

// Limit sets a bound of memory, in bytes. Near the bound, Go collects garbage more often. Only Linux has a hard bound.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// cpu returns 0, because CPU time is bounded only on Linux.
func cpu() time.Duration { return 0 }
