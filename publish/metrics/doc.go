// Package metrics counts events of releases, of the reconcile loop and of Git. It compares the states before and after
// each pass, so that no event is counted twice after a restart.
package metrics
