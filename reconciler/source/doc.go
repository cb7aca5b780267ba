// Package source reads the users' branch and the state branch. The loop in package reconciler, and the commands and
// pages that explain its decisions, read both through this package. All callers share the same [Gatherer].
package source
