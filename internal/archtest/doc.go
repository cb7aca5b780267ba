// Package archtest checks rules for the repository: imports, the length of functions and files, the use of the clock
// and the logger, and names in the documentation. The tests open the checked files, so go test uses no cached result
// after a change of a file.
package archtest
