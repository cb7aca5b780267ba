// Package plan predicts the effect of a change of the users' branch before it is pushed: the changed apps and objects,
// the stages of each release with pods and times, and changes that cannot be staged, with the reason. Its types are the
// form of the JSON of gitrollout plan; fields are only ever added.
//
// It is pure: its inputs are both renders of each app, the record, and the time. Its neighbours: strategies, which
// predicts a release, and cmd/gitrollout, which renders both sides and prints the result.
package plan
