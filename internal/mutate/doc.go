// Command mutate asks the tests what they would notice: it draws mutants of the
// product by chance, each one a change of a single token or statement, and runs
// the tests of the mutant's package on it. When all are drawn, it asks about those
// that live the tests of other packages that live through the code (tests.go). It
// changes no file: a mutant is an overlay of the build.
//
//	go run ./internal/mutate -n 100 -seed 7
//	go run ./internal/mutate -n 20 -seed 7,8 ./strategies ./rollout
//
// It prints a line for each mutant, a second one for those that lived through
// their package's tests, and how many of them were caught. What is
// drawn depends on the code and on -seed alone. Packages whose tests need a
// cluster share one when it runs as: .ci/with-cluster go run ./internal/mutate
//
// The first time that a package's tests are asked, they run where nothing is
// changed. In the packages whose tests take minutes, each of them runs by itself, in
// an instrumented build: that says what it runs, and how long it takes. Only tests
// that ran the changed statements are asked about a mutant there, since the others
// cannot notice it; one of more than ten seconds is asked by its subtests, where
// each of them passes by itself. What processes ran that a test has killed is not
// known: where such a process may have run the mutant, all of the package's tests
// are asked (covered.go). Tests of less than two seconds are asked before the
// others, and all of them run as with -short.
//
// A mutant is caught when a test fails with it and, asked alone, fails again: a
// test that fails by chance catches nothing, and neither does one that fails
// without any mutant, which is said. One that hangs is caught after ten times
// what the tests took, and a minute.
package main
