// Package console implements a user's session for the commands and the dashboard. A Session reads the same data as the
// reconciler, and pushes the user's changes. It uses reconciler/source to gather the input of a decision,
// reconciler/propose to build commits, and views/status to describe apps.
package console
