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

// Limit bounds this process's memory to its size plus that many bytes, before Serve. Near it Go collects garbage more
// eagerly, and then ends. Only Linux has a hard bound; elsewhere only time is bounded.
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

// soften makes Go try to stay below a bound. A stack bound ends endless recursion before that.
func soften(memory int64) {
	debug.SetMemoryLimit(memory * 9 / 10)
	debug.SetMaxStack(64 << 20)
	debug.SetGCPercent(500) // a build's garbage is most of a worker: 10 MiB remain of at most 50
}

// cpu returns this process's CPU time.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
