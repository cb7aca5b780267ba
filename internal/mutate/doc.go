// Command mutate measures which share of mutants the tests detect. It draws random mutants of the product, each a
// change of a single token or statement, and runs the tests of the mutant's package. If a mutant survives, mutate runs
// the tests of other packages that use the code (tests.go). mutate changes no file: the mutants are an overlay of the
// build.
//
// One build has all drawn mutants, each behind a switch (switch.go). The tests of a package are built once, and a file
// beside the test binary names the enabled mutant (package on). A mutant that cannot be switched, such as a mutant of
// an array's length, is built separately. go/types decides which mutants compile, and which can be switched (types.go).
//
//	go run ./internal/mutate -n 100 -seed 7
//	go run ./internal/mutate -n 20 -seed 7,8 ./strategies ./rollout
//	go run ./internal/mutate -n 9999 -own -p 4 ./git/wire
//
// mutate prints a line for each mutant, a second line for mutants that survived their package's tests, and the number
// of killed mutants. The draw depends only on the code, -seed and -n. If -n exceeds the number of mutants, all are
// drawn. To share one cluster between all tests: .ci/with-cluster go run ./internal/mutate
//
// A package's tests first run with no mutant enabled, and record the mutants that they execute. If testing all mutants
// of a package would take minutes, each test runs separately, which also measures its time. Only tests that execute a
// mutant can detect it, so other tests do not run. A test of more than ten seconds is divided into its subtests, if
// each subtest passes separately (asked.go). Tests of less than two seconds run first, and all tests run with -short.
//
// A flaky test kills no mutant: a test must fail twice with the mutant, the second time alone. Tests that fail without
// a mutant are reported and not used. A test that hangs counts as failed after 20 seconds plus ten times its normal
// duration.
package main
