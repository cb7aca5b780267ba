// Package traffic tests what users notice of releases that route requests, with
// nothing simulated but the programs in the pods: the real gitrollout, a real Git
// server that people push to, real Traefik with three of its providers
// (internal/proxytest), a real Prometheus that scrapes the pods, and requests at a
// fixed rate from before each release to after it.
//
// No request may fail or come to a pod that is not ready, and each step has its
// share. The providers are in each story together, each with an app of its own, and
// their people push and promote at the same moments: Traefik begins its round of
// weights anew whenever anything changes in the cluster, so that a story beside
// another one would have less than its share.
//
// In the stories that are measured some versions fail a part of their requests or
// are slow, and have to go back by themselves; good ones may not. All run beside
// each other, so that together they take little more than the longest.
package traffic
