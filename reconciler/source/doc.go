// Package source reads what Git says: the users' branch and the state branch as nouns. It is where
// everybody who decides or shows gathers from: the loop in package reconciler, and the commands and
// pages that explain what the loop would do. All of them call the same [Gatherer].
package source
