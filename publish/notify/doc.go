// Package notify says what people are told of a release. Which events there are follows from two recorded states of an
// app, so the state branch alone decides what is told, and the same commit always tells the same. It is pure.
package notify
