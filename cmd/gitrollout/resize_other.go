//go:build !unix

package main

import "os"

// resizes has no signal on this system: the next drawing, at most a second later, reads the new size.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
