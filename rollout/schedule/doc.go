// Package schedule computes, for a list of windows in a time zone, whether a moment is allowed and when the next
// allowed one is. It is pure: the moment is an argument, and every search is bounded.
//
// It does not depend on apps and releases: rollout reads windows from files, and strategies uses the answers.
package schedule
