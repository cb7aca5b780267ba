// Package schemas tests the JSON Schemas of render/schema. They must accept the examples and all valid documents in
// tests and pages, and refuse most documents that render refuses. The package has only tests.
package schemas
