//go:build !unix

package main

import "os"

// resizes has no signal here: the next drawing, at most a second later, reads the size.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
