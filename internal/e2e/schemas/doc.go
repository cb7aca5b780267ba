// Package schemas tests the errors that an editor shows with the JSON Schemas of render/schema: none in examples and in
// valid documents of tests and pages, and at least one in most documents that render refuses. It has only tests.
package schemas
