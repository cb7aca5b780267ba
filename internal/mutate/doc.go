// Command mutate asks the tests what they would notice: it draws mutants of the
// product by chance, each one a change of a single token or statement, and runs
// the tests of the mutant's package on it. When all are drawn, it asks about those
// that live the tests of other packages that live through the code (tests.go). It
// changes no file: the mutants are an overlay of the build.
//
// All mutants that were drawn are in one build, each behind a switch (switch.go): the tests
// of a package are built once, and a file beside their program says which mutant is on
// (package on). What cannot be switched, as the length of an array, is built by itself. Which
// mutants are programs at all, and which can be switched, go/types says (types.go).
//
//	go run ./internal/mutate -n 100 -seed 7
//	go run ./internal/mutate -n 20 -seed 7,8 ./strategies ./rollout
//	go run ./internal/mutate -n 9999 -own -p 4 ./git/wire
//
// It prints a line for each mutant, a second one for those that lived through their package's tests,
// and how many of them were caught. What is drawn depends on the code and on -seed alone; where -n is
// more than there are, all are. Packages whose tests need a cluster share one when it runs as:
// .ci/with-cluster go run ./internal/mutate
//
// The first time that a package's tests are asked, they run with no mutant on, and note which they come by.
// Where all mutants of a package would take minutes, each test runs by itself: that says what it comes by,
// and how long it takes. Only tests that came by a mutant are asked about it, since the others cannot notice it;
// one of more than ten seconds is asked by its subtests, where each of them passes by itself (asked.go). Tests of
// less than two seconds are asked before the others, and all of them run as with -short.
//
// A mutant is caught when a test fails with it and, asked alone, fails again: a test that fails by chance
// catches nothing, and neither does one that fails without any mutant, which is said. One that hangs is caught
// after ten times what the tests took, and 20 seconds.
package main
