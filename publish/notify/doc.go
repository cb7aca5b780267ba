// Package notify computes an app's notifications purely from two recorded states: equal commits give equal events.
package notify
