// Package schemas tests the JSON Schemas of render/schema. The schemas must accept the examples and all valid documents
// in tests and documentation, and refuse most documents that render refuses. The package has only tests.
package schemas
