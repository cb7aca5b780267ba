// Package propose makes the commits that change the users' branch: what people ask for (promote, hold, abort,
// retry, undo) and what the reconciler proposes to them (a promotion to merge, a revert to merge).
//
// It is pure: it returns an Order, and whoever called it pushes that. Its neighbours: strategies, which says
// where a release stands; reconciler, which pushes the orders of the loop; cmd/gitrollout, which pushes those of
// people, from a terminal and from the dashboard alike.
package propose
