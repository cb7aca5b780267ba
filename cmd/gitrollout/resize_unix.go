//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes returns a channel that gets a signal when the terminal's size changes, until the function stop is called.
func resizes() (told <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
