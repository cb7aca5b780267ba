// Package console implements a user's session for the commands and the dashboard. A Session reads the reconciler's data
// and pushes the user's changes.
package console
