// Package metrics counts events of releases, the loop and Git, for Prometheus.
//
// The counts of releases follow from the states recorded before and after a pass, and durations from the times in these
// states. A restarted process counts nothing twice, and knows the duration of a release that began before its start.
// Package reconciler reports each pass, and cmd/gitrollout serves the numbers.
package metrics
