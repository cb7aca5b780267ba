// Package experiment makes what a canary's experiment runs: for each of its
// templates a Deployment and, where it is asked for, a Service.
//
// Its neighbours: strategies says when they are there, and render makes them once to see that they can be made. They
// are pure functions of the two versions' objects, so that the same release asks for the same objects at each pass and
// after each restart.
package experiment
