// Package traffic applies a release's traffic settings to routers' objects: weights, and rules for matched and mirrored
// requests. The overlay is pure. Only the overlay writes weights. Each router has a file, a line in table.go, and a
// folder below testdata.
package traffic
