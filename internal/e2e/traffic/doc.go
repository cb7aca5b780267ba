// Package traffic tests requests during releases; only the programs in the pods are simulated. It runs gitrollout, a
// Git server, Traefik with three of its providers (internal/proxytest), and a Prometheus that scrapes the pods.
// Requests come at a fixed rate from before each release to after it.
//
// No request may fail or reach a pod that is not ready, and each step must have its share. Each story has one app per
// provider, and pushes and promotes them at the same time. Traefik restarts its round of weights at any change in the
// cluster, so parallel stories would disturb the shares.
//
// In the stories with measurements, versions that fail some of their requests or are slow must be rolled back
// automatically, and good ones must not. These stories run in parallel to save time.
package traffic
