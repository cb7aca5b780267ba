// Package notify computes notifications only from recorded states of an app, so that equal commits give equal events.
package notify
