// Package traffic tests requests during releases; only the programs in the pods are simulated. It runs gitrollout, a
// Git server, Traefik with three of its providers (internal/proxytest), and a Prometheus that scrapes the pods.
// Before, during and after each release, requests are sent at a fixed rate.
//
// No request may fail or reach a pod that is not ready, and at each step, the new version must get its share. Each test
// has one app per provider, and pushes and promotes all apps at the same time. Traefik's weighted round robin starts
// again at any change in the cluster, so tests of exact shares do not run in parallel.
//
// In the tests with measurements, gitrollout must automatically roll back versions with failing or slow requests, and
// must not roll back good versions. These tests run in parallel to save time.
package traffic
