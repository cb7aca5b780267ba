// Package notify computes notifications only from two recorded states of an app, so equal commits give equal events.
package notify
