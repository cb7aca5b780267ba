// Package archtest tests the rules of the code: imports, the length of functions and files, the use of the clock and
// the logger, and names in the documentation. The tests read files, so go test reruns them after changes.
package archtest
