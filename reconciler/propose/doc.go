// Package propose builds the commits that change the users' branch. Users cause some commits with actions such as
// "promote" and "abort". The reconciler proposes promotions and reverts, and users merge them.
//
// The package is pure. It returns a Change, which package reconciler or cmd/gitrollout pushes.
package propose
