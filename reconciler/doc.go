// Package reconciler is the control loop: gather, decide, act. Three concurrent pumps do not wait for each other
// (docs/adr/0015). One fetches Git, one reconciles apps, and one records many transitions in one push. An advance is
// applied after its push, a rollback before its push. All state in memory is a cache, so the process may be killed at
// any time.
package reconciler
