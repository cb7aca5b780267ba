//go:build !unix

package main

import "os"

// resizes returns no signal on this system. The next drawing, at most a second later, reads the terminal's size.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
