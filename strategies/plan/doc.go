// Package plan compiles a Rollout's spec to stages, each with a weight, routes, numbers of pods and a wait. Package
// strategies walks the stages; plan knows no cluster and no time.
//
// A strategy is one file (canary.go, bluegreen.go) and one line of a table.
package plan
