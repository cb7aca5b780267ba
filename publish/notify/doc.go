// Package notify computes notifications from recorded states alone, so that equal commits give equal events.
package notify
