// Package schedule computes whether a list of recurring windows is open at a time, and when the list opens next. It
// does not read the clock: the time is an argument. Every search is bounded.
//
// The package does not know apps. Package rollout reads the windows from files. Package strategies uses the answers.
package schedule
