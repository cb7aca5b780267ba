// Package propose builds the commits that change the users' branch. Users request some of them with actions such as
// "promote" and "abort". The reconciler proposes promotions and reverts, and users merge them.
//
// The package is pure: it returns a Change, and package reconciler or cmd/gitrollout pushes the commit.
package propose
