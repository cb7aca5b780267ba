// Package metrics counts events of releases, of the reconcile loop and of Git, for Prometheus. It compares the recorded
// states before and after each pass, so that a restarted process counts no event twice. Package reconciler reports the
// passes, and cmd/gitrollout serves the metrics.
package metrics
