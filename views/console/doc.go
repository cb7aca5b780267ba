// Package console implements a user's session for the commands and the dashboard. A Session reads the same data as the
// reconciler, and pushes the user's changes. It gathers the input of a decision with reconciler/source, builds commits
// with reconciler/propose, and describes apps with views/status.
package console
