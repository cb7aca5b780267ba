// Package notify computes the notifications of a release. Events follow from two recorded states of an app, so the
// state branch alone decides them, and the same commit always gives the same events. It is pure.
package notify
