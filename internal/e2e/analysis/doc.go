// Package analysis tests releases that are measured, with nothing simulated but
// the programs in the pods: the real gitrollout, a real Git server and control
// plane, requests at a fixed rate through a real proxy (internal/proxytest), and a
// real Prometheus that scrapes the pods. Some versions fail a part of their
// requests or are slow, and have to go back by themselves; good ones may not.
//
// The apps of a story release at the same moment, each with users of its own, so
// that all stories together take little more than the longest.
package analysis
