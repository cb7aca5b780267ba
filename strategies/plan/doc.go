// Package plan compiles a Rollout's spec to stages. Each stage has a weight, routes, numbers of pods and a wait.
// Package strategies walks the stages. Package plan knows neither the cluster nor the time.
//
// A strategy is one file (canary.go, bluegreen.go) and one entry of Table.
package plan
