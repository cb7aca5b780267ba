// Package notify computes notifications only from recorded states, so that equal commits give equal events.
package notify
