// Command mutate measures the tests by mutants. It draws random mutants of the product, each a change of a single token
// or statement, and runs the tests of the mutant's package. For mutants that survive, it then runs the tests of other
// packages that use the code (tests.go). It changes no file: the mutants are an overlay of the build.
//
// One build has all drawn mutants, each behind a switch (switch.go). The tests of a package are built once, and a file
// beside their program names the enabled mutant (package on). Mutants that cannot be switched, such as in an array's
// length, are built separately. go/types decides which mutants compile, and which can be switched (types.go).
//
//	go run ./internal/mutate -n 100 -seed 7
//	go run ./internal/mutate -n 20 -seed 7,8 ./strategies ./rollout
//	go run ./internal/mutate -n 9999 -own -p 4 ./git/wire
//
// It prints a line for each mutant, a second line for mutants that survived their package's tests, and the number of
// killed mutants. The drawn mutants depend only on the code and on -seed; all are drawn if -n exceeds their number.
// Packages whose tests need a cluster share one with: .ci/with-cluster go run ./internal/mutate
//
// A package's tests first run without a mutant, and record the mutants that they execute. If all mutants of a package
// would take minutes, each test runs separately, which also measures its time. Only tests that execute a mutant run for
// it, since the others cannot detect it. A test of more than ten seconds is run by its subtests, if each of them passes
// separately (asked.go). Tests of less than two seconds run first, and all tests run with -short.
//
// A mutant is killed when a test fails with it and, run alone, fails again, so flaky tests do not count. Tests that
// fail without a mutant do not count either, and are reported. A hanging test counts after ten times its normal
// duration, and 20 seconds.
package main
