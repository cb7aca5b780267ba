// Package propose builds the commits that change the users' branch. Users cause some of them with actions such as
// promote and abort. The reconciler proposes the others: promotions and reverts to merge.
//
// The package is pure. It returns a Change, which package reconciler or cmd/gitrollout pushes.
package propose
