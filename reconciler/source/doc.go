// Package source reads the users' branch and the state branch. The reconciler uses it, as do the commands and pages
// that explain decisions. All use [Gatherer].
package source
