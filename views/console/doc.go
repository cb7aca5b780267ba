// Package console implements a user's session for the commands and the dashboard. A Session reads the data that the
// reconciler reads, and pushes the user's changes. Package reconciler/source gathers the input of a decision.
// reconciler/propose builds commits. views/status describes apps.
package console
