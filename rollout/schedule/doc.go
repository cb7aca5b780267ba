// Package schedule computes whether a list of recurring windows is open at a time, and when it opens next. It reads no
// clock: the time is an argument. Every search is bounded.
//
// The package does not know apps. Package rollout reads windows from files, and package strategies uses the results.
package schedule
