// Package metrics counts events of releases, of the reconcile loop and of Git. It compares the recorded states before
// and after each pass, so a restarted process counts no event again.
package metrics
