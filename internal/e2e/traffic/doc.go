// Package traffic tests requests during releases; only the programs in the pods are simulated. It runs gitrollout, a
// Git server, Traefik with three of its providers (internal/proxytest), and a Prometheus that scrapes the pods.
// Requests are sent at a fixed rate from before each release until after its end.
//
// No request may fail or reach a pod that is not ready, and at each step, the new version must get its share. Each test
// has one app per provider, and pushes and promotes all apps at the same time. Traefik restarts its round of weights at
// any change in the cluster, so tests of exact shares do not run in parallel.
//
// In the tests with measurements, versions that fail some of their requests or are slow must be rolled back
// automatically, and good versions must not. These tests run in parallel to save time.
package traffic
