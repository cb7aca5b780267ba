// Package rollout holds the nouns that every other package speaks in: what an app is, what a Rollout document asks for,
// what a release has reached (State), what the cluster shows (Observed), and the exact bytes of the files that
// gitrollout reads from and writes to Git.
//
// It knows nothing of Kubernetes clients, of Git or of the clock. Its neighbours: render fills a Render from a commit,
// cluster fills an Observed, strategies turns both and a State into the next State, and git carries the encoded State
// to the state branch.
package rollout
