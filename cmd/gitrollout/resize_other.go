//go:build !unix

package main

import "os"

// resizes returns nil, because this system has no such signal. The size is read every second.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
