//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func resizes() (told <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
