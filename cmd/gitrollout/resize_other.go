//go:build !unix

package main

import "os"

// resizes returns nil, because this system has no SIGWINCH. watcher reads the size every second.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
