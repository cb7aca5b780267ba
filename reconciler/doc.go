// Package reconciler is the loop: gather, decide, act. Three pumps run concurrently without a common barrier
// (docs/adr/0015). The first fetches Git and publishes a view. The second reconciles apps: it applies an app's recorded
// state, observes the cluster and calls strategies.Decide. The third records many transitions in one commit and one
// push. An advance is applied after the push, a rollback before it.
//
// The package owns only this order. Git, the renderer and the cluster are the small interfaces of interfaces.go, wired
// in cmd/gitrollout. All state in memory is a cache, so the process may be killed at any instruction.
//
// Files, in the order of a push that becomes a release:
//
//	run.go appqueue.go            the pumps and the queue of due apps
//	poller.go trust.go approve.go reads Git: the users' branch, signatures and approvals
//	rendercache.go renderqueue.go renders apps at commits in the background
//	fetcher.go blame.go           fetches missing commits, and finds authors
//	pass.go routing.go apply.go   one app: gather, decide, apply
//	outbox.go committer.go        writes Git: the queue of transitions and their commit
//	statestore.go                 the states in Git
//	revert.go tidy.go shown.go    follows a recorded commit: reverts, proposal branches, the forge
//	report.go                     the values of package report, for publish and views
package reconciler
