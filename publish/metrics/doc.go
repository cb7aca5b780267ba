// Package metrics counts events of releases, the loop and Git, for Prometheus. It computes counts and durations from
// the states before and after a pass. These states are recorded, so a restarted process counts no event twice. Package
// reconciler reports passes, and cmd/gitrollout serves the metrics.
package metrics
