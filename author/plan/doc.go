// Package plan predicts the effect of a change of the users' branch before it is pushed: changed apps and objects, and
// each release's stages with pods and times. It gives a reason for changes that cannot be staged. Its types are the
// JSON of gitrollout plan. Fields are only ever added to them.
//
// It is pure: the renders of both sides, the record and the time are inputs. Package strategies predicts a release;
// cmd/gitrollout renders both sides and prints the plan.
package plan
