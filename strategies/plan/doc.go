// Package plan compiles the spec of a Rollout document to stages. Each stage has a weight, routes, numbers of pods and
// a wait. Package strategies moves releases from stage to stage. Package plan knows neither the cluster nor the time.
//
// Each strategy has one file (canary.go, bluegreen.go) and one entry in Table.
package plan
