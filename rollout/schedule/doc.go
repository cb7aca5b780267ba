// Package schedule computes whether a list of recurring windows is open at a time, and when it opens next. It does not
// read the clock: the time is an argument. Every search is bounded.
//
// The package does not know apps and releases: rollout reads windows from files, and strategies uses the answers.
package schedule
