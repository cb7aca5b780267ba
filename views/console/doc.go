// Package console is a user's session with a cluster's releases. It reads the same data as the loop and pushes
// requested changes with the user as author. The commands and the dashboard use it. reconciler/source gathers,
// reconciler/propose builds commits, and views/status describes apps.
package console
