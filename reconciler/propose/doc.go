// Package propose builds the commits that change the users' branch: users' actions (promote, hold, abort, retry, undo)
// and the reconciler's proposals (a promotion to merge, a revert to merge).
//
// It is pure: it returns an Order for the caller to push. Package strategies computes the state of a release. Package
// reconciler pushes the loop's orders; cmd/gitrollout pushes the users' orders, from a terminal and from the dashboard.
package propose
