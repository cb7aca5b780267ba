// Package schemas tests an editor's errors with the JSON Schemas of render/schema. Examples and valid documents of
// tests and pages must have none, and most documents that render refuses must have some. It has only tests.
package schemas
