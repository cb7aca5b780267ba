// Package plan says what a change of the users' branch would do before it is pushed: which apps it changes, the objects
// that differ, the stages of each release with their pods and their times, and what cannot be staged and why. Its types
// are the form of the JSON of gitrollout plan, to which fields are only ever added.
//
// It is pure: it is given both renders of each app, what is recorded, and the time. Its neighbours: strategies, which
// it asks how a release goes; and cmd/gitrollout, which renders both sides and prints the result.
package plan
