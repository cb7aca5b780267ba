// Package reconciler is the control loop: gather, decide, act. Three loops (pumps) run concurrently and do not wait for
// each other (docs/adr/0015). The first pump fetches Git and publishes a view of the users' branch. The second pump
// reconciles apps: it applies the recorded state, observes the cluster and calls strategies.Decide. The third pump
// records many transitions in one commit and one push. Advances are applied after the push, rollbacks before.
//
// The package contains only this sequence. Git, the renderer and the cluster are interfaces (interfaces.go), which
// cmd/gitrollout connects. All state in memory is a cache, so the process may be killed at any time.
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
