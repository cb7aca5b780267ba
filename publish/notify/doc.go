// Package notify computes an app's notifications from two recorded states only, so equal commits give equal events.
package notify
