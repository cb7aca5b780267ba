// Package propose builds the commits that change the users' branch: users' actions (promote, hold, abort, retry, undo)
// and the reconciler's proposals (a promotion to merge, a revert to merge).
//
// It is pure: it returns an Order for package reconciler or, for users' orders, cmd/gitrollout to push. Package
// strategies computes a release's state.
package propose
