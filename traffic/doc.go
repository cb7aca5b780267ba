// Package traffic applies a release's traffic settings to objects: the new version's share of requests, matched users
// and mirrored requests. It is an overlay on the objects in Git, so no two writers set a weight. It is pure: the same
// objects and the same Route make the same objects.
//
// A router is one file with its configuration and overlay, one line in table.go, and one folder below testdata. The
// Rollout document can describe any other router: see object.go.
package traffic
