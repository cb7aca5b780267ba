// Package traffic applies a release's traffic settings to objects: the share of requests, the matched users and the
// mirrored requests of the new version. It is an overlay on the objects in Git, so no two writers set a weight. It is
// pure: the same objects and the same Route make the same objects.
//
// A router is one file with its configuration and its overlay, one line in the table of table.go, and one folder below
// testdata. The Rollout document can describe any other router: see object.go.
package traffic
