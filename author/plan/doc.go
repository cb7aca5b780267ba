// Package plan predicts the effect of a change before users push it. It lists changed apps and objects, and each
// release's stages with pods and times. It gives a reason for changes that cannot be staged. The types define the
// JSON of "gitrollout plan". Fields may be added, but not removed. The package reads neither Git nor a clock: callers
// pass both trees, the renderer, the record and the time. It uses package strategies. cmd/gitrollout prints the plan.
package plan
