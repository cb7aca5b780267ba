// Package propose builds the commits that change the users' branch: users' actions (promote, hold, abort, retry, undo)
// and the reconciler's proposals (a promotion to merge, a revert to merge).
//
// The package is pure: it returns a Change, which package reconciler or, for users' actions, cmd/gitrollout pushes.
// Package strategies computes a release's state.
package propose
