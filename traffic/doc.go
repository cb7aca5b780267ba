// Package traffic applies a release's traffic settings to routers' objects: the new version's weight, and rules for
// matched and mirrored requests. The settings are an overlay on the objects from Git, so that only one writer sets a
// weight. The overlay is a pure function of the objects and the Route.
//
// Each router has one file with its configuration and overlay, one line in table.go, and one folder below testdata. For
// any other router, the Rollout document gives the paths of the weight fields: see object.go.
package traffic
