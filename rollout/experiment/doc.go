// Package experiment makes what a canary's experiment runs: for each of its
// templates a Deployment and, where it is asked for, a Service.
package experiment
