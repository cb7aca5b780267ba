// Package console is a user's session, from the commands or the dashboard, with a cluster's releases. It reads the
// loop's data and pushes changes by the user. reconciler/source gathers, reconciler/propose builds commits,
// views/status describes.
package console
