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

// Limit lets this process's memory grow by the given number of bytes. Above the limit, the process ends. Call Limit
// before Serve.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory * 9 / 10)
	debug.SetMaxStack(64 << 20) // ends endless recursion early
	debug.SetGCPercent(500)     // after a build, 40 of a worker's 50 MiB are garbage
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return fmt.Errorf("limit the memory: %w", err)
	}
	pages, _, _ := bytes.Cut(statm, []byte(" "))
	size, err := strconv.ParseUint(string(pages), 10, 64)
	if err != nil {
		return fmt.Errorf("limit the memory: %w", err)
	}
	most := size*uint64(os.Getpagesize()) + uint64(memory)
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("limit the memory: %w", err)
	}
	return nil
}

func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
