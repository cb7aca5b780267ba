//go:build !unix

package main

import "os"

// resizes tells nothing where there is no signal for it: the next drawing, a second later at most, finds out.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
