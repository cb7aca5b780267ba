// Package source reads what Git says: the users' branch and the state branch as nouns. It is where
// everybody who decides or shows gathers from: the loop in package reconciler, and the commands and
// pages that explain what the loop would do. All of them call the same [Gatherer].
//
// Its neighbours: package render makes objects of a commit, package strategies decides on what is
// gathered here. It fetches nothing and writes nothing.
package source
