//go:build !unix

package main

import "os"

// resizes returns no signal on this system. The terminal's size is read again within a second, with the next drawing.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
