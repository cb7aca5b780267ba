//go:build !linux

package worker

import "runtime/debug"

// Limit has Go collect garbage the more eagerly the nearer this process comes to that many bytes. Nothing holds it to
// them: that is for Linux only, and elsewhere the bound of time is what holds.
func Limit(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}
