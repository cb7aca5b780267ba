// Command mutate asks the tests what they would notice: it draws mutants of the
// product by chance, each one a change of a single token or statement, and runs
// the tests of the mutant's package on it, then those that live through it
// (tests.go). It changes no file: a mutant is an overlay of the build.
//
//	go run ./internal/mutate -n 100 -seed 7
//	go run ./internal/mutate -n 20 -seed 7 ./strategies ./rollout
//
// It prints a line for each mutant, and how many of them were caught. What is
// drawn depends on the code and on -seed alone. Packages whose tests need a
// cluster share one when it runs as: .ci/with-cluster go run ./internal/mutate
package main
