// Package source reads the users' branch and the state branch. The reconciler uses it, and so do the commands and pages
// that explain decisions. All of them use [Gatherer].
package source
