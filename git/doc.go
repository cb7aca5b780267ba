// Package git reads and writes commits of one remote repository through a [Repo], a shallow mirror in memory without a
// worktree. One push moves any number of refs by compare-and-swap.
package git
