// Package archtest holds what the code is built by: who may import whom, how
// long functions and files may be, where the clock and the logger may be used,
// and that what the documentation names exists. It has only tests. They read
// files and start no program, so that go test notices every change.
package archtest
