package worker

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// Limit bounds the memory of this process to its current size plus that many bytes. It is called before Serve. Go
// collects garbage more eagerly near the bound, and ends the process if that is not enough. Only Linux has a hard
// bound; elsewhere only the time is bounded.
func Limit(memory int64) error {
	soften(memory)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return fmt.Errorf("bound of memory: %w", err)
	}
	pages, _, _ := bytes.Cut(statm, []byte(" "))
	size, err := strconv.ParseUint(string(pages), 10, 64)
	if err != nil {
		return fmt.Errorf("bound of memory: %w", err)
	}
	most := size*uint64(os.Getpagesize()) + uint64(memory)
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("bound of memory: %w", err)
	}
	return nil
}

// soften makes Go try to stay below a bound. Its stack bound ends endless recursion before that uses all the memory.
func soften(memory int64) {
	debug.SetMemoryLimit(memory * 9 / 10)
	debug.SetMaxStack(64 << 20)
	debug.SetGCPercent(500) // a build's garbage is most of a worker: 10 MiB remain of at most 50
}

// cpu returns the CPU time that this process has used.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
