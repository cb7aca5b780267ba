// Package schedule computes whether a list of recurring windows is open at a time, and when it opens next. It reads no
// clock, and every search is bounded. Package rollout reads the windows.
package schedule
