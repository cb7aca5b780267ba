// Package plan predicts the effect of a change before users push it: changed apps, objects, and release stages. The
// types define the JSON of "gitrollout plan". Fields may be added, but not removed. The package reads neither Git nor a
// clock: callers pass both trees, the renderer, the record and the time.
package plan
