//go:build !linux

package worker

import (
	"runtime/debug"
	"time"
)

// Limit sets a soft limit in bytes. Only Linux has a hard limit.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}

func cpu() time.Duration { return 0 }
