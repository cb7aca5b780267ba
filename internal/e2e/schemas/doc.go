// Package schemas has the tests of what an editor says with the JSON Schemas of
// render/schema: nothing of any example and any good document of the tests and
// pages, and something of most that render refuses. It has only tests.
package schemas
