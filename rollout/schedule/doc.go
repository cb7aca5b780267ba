// Package schedule answers two questions about times of day and days of the week in a time zone: whether a moment is
// within what a list of windows allows, and when it is the next time. It is pure: the moment is an argument, and every
// search is bounded.
//
// It knows nothing of apps and releases: rollout reads windows from files, and strategies acts on what they say.
package schedule
