// Package plan compiles the spec of a Rollout document to stages, each with a weight, routes, numbers of pods and a
// wait. It knows neither the cluster nor the time.
package plan
