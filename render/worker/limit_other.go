//go:build !linux

package worker

import (
	"runtime/debug"
	"time"
)

// Limit makes Go collect garbage more eagerly near that many bytes. There is no hard bound of memory: only Linux has
// one, and elsewhere only the bound of time applies.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// cpu returns 0: CPU time is bounded on Linux only.
func cpu() time.Duration { return 0 }
