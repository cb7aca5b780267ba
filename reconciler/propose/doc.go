// Package propose builds the commits that change the users' branch. Users request commits with actions such as
// "promote". The reconciler proposes other commits, and users merge them. The package is pure. Its callers push the
// returned Change.
package propose
