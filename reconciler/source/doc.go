// Package source reads the users' branch and the state branch, for the reconciler and for commands and pages that
// explain decisions. All use [Gatherer].
package source
