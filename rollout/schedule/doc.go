// Package schedule computes whether a list of windows in a time zone allows a moment, and when it next does. It is
// pure: the moment is an argument, and every search is bounded.
//
// It does not depend on apps and releases: rollout reads windows from files, and strategies uses the answers.
package schedule
