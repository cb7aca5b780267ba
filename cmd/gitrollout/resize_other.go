//go:build !unix

package main

import "os"

// resizes returns nil: this system has no such signal, and the size is read every second.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
