// Package archtest tests the rules of the code: imports, the length of functions and files, the use of the clock and
// the logger, and names in the documentation. It has only tests. They read files, so that go test notices every change.
package archtest
