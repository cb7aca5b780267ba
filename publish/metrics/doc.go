// Package metrics counts events of releases, the loop and Git, for Prometheus.
//
// Counts follow from the states recorded before and after a pass, durations from their times. A restarted process
// counts nothing twice, and knows the duration of an earlier release. Package reconciler reports passes, and
// cmd/gitrollout serves the numbers.
package metrics
