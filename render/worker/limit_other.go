//go:build !linux

package worker

import (
	"runtime/debug"
	"time"
)

// Limit makes Go collect garbage more often when the process uses almost memory, in bytes. Only Linux has a hard bound.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// cpu returns 0, because CPU time is bounded only on Linux.
func cpu() time.Duration { return 0 }
