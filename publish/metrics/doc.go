// Package metrics counts events of releases, the loop and Git, for Prometheus. Counts and durations follow from the
// states recorded before and after a pass. So a restarted process counts nothing twice, and knows how long an earlier
// release took. Package reconciler reports passes, and cmd/gitrollout serves the metrics.
package metrics
