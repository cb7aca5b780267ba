// Package traffic turns what a release asks of its routers into objects: which share of the requests, which users and
// which copies go to the new version. It is an overlay on the objects that the user keeps in Git, so nothing ever
// fights over a weight. It is pure: the same objects and the same Route make the same objects.
//
// A router is one file with its configuration and its overlay, one line in the table of table.go, and one folder below
// testdata. A router that is not known here can be described in the Rollout document instead: see object.go.
package traffic
