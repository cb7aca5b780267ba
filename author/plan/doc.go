// Package plan predicts the effect of a change of the users' branch before the push. It lists changed apps and objects,
// and each release's stages with pods and times. It gives a reason for changes that cannot be staged. The types define
// the JSON of "gitrollout plan". Fields may be added, but not removed. The package is pure, because callers pass in
// both sides, the record and the time. Package strategies predicts a release. cmd/gitrollout renders both sides and
// prints the plan.
package plan
