// Package traffic applies a release's traffic settings to routers' objects: weights, and rules for matched and mirrored
// requests. Overlay is a pure function. Only Overlay writes weights. Each router has a file, a line in table.go, and a
// folder below testdata.
package traffic
