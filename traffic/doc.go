// Package traffic applies a release's traffic settings to routers' objects: weights, and rules for matched and mirrored
// requests. The overlay on Git's objects is pure, and the only writer of weights.
//
// Each router has one file with its configuration and overlay, one line in table.go, and one folder below testdata. For
// any other router, the Rollout document gives the paths of the weight fields: see object.go.
package traffic
