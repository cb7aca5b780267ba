// Package propose builds the commits that change the users' branch. Users request some of them with actions such as
// "promote". The reconciler proposes others, which users merge. The package is pure: its callers push the returned
// Change.
package propose
