// Package source reads the users' and the state branch, for the reconciler and for the commands and pages that explain
// its decisions. All share the same [Gatherer].
package source
