//go:build !unix

package main

import "os"

// resizes returns a nil channel, because this system has no signal for it. The size is read again every second.
func resizes() (told <-chan os.Signal, stop func()) { return nil, func() {} }
