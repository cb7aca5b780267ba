//go:build !linux

package worker

import (
	"runtime/debug"
	"time"
)

// Limit makes Go collect garbage more eagerly near that many bytes, without the hard bound of Linux.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// cpu returns 0: CPU time is bounded on Linux only.
func cpu() time.Duration { return 0 }
