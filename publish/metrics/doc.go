// Package metrics counts events of releases, of the reconcile loop and of Git. It compares states before and after each
// pass, so that a restarted process counts no event twice.
package metrics
