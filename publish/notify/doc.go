// Package notify computes an app's notifications purely from two recorded states: a commit always gives the same.
package notify
