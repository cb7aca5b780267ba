// Package metrics counts what releases, the loop and Git do, for Prometheus.
//
// What is counted of releases follows from the records before and after a pass, and durations from the moments that
// these records hold: a process that is started again counts nothing twice, and knows how long a release has taken that
// began before it. Its neighbours: reconciler, which tells of each pass, and cmd/gitrollout, which serves the numbers.
package metrics
