// Package schemas tests an editor's errors with the JSON Schemas of render/schema: none for the examples and valid
// documents of tests and pages, and some for most documents that render refuses. It has only tests.
package schemas
