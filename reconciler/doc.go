// Package reconciler is the loop: gather, decide, act. One pass fetches what is
// new in Git, renders the apps whose files changed, observes the cluster,
// lets strategies decide, records every transition of the pass in one commit
// and one push, and only then applies what the new states ask for. A retreat
// alone is applied first.
//
// It owns the order of things and nothing else: Git, the renderer and the
// cluster are the small interfaces below, wired in cmd/gitrollout. Everything
// that it remembers between passes is a cache; it may be killed at any
// instruction.
package reconciler
