//go:build !unix

package main

import "os"

// resizes returns no channel on this system. Each drawing reads the terminal's size, at least once per second.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
