// Package plan predicts the effect of a change of the users' branch before it is pushed. It lists changed apps and
// objects, and the stages of each release with pods and times. It gives a reason for changes that cannot be staged. Its
// types define the JSON of gitrollout plan: fields may be added, but not removed. It is pure: the renders of both
// sides, the record and the time are inputs. Package strategies predicts a release; cmd/gitrollout renders both sides
// and prints the plan.
package plan
