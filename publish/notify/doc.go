// Package notify says what people are told of a release. Which events there are follows from two recorded states of an
// app, so the state branch alone decides what is told, and the same commit always tells the same. It is pure.
//
// Its neighbours: notify/service knows how each service takes a message, and
// notify/worker when one is due and who has had it already.
package notify
