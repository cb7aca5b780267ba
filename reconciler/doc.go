// Package reconciler is the loop: gather, decide, act. It is three pumps that run beside each other and share no
// barrier (docs/adr/0015). One looks at Git and publishes what it says; one visits apps, each by itself: what is
// recorded is applied, the cluster is observed, and strategies decides; one records, many transitions in one commit
// and one push. An advance is applied when it is in Git, a retreat at once.
//
// It owns the order of things and nothing else: Git, the renderer and the cluster are the small interfaces below, wired
// in cmd/gitrollout. Everything that it remembers is a cache; it may be killed at any instruction.
//
// Files, in the order of a push that becomes a release:
//
//	run.go agenda.go            the pumps, and when which app is visited
//	look.go trust.go approve.go Git in: what is on the users' branch, and who may say so
//	renders.go                  apps as of commits, beside everything else
//	visit.go routing.go apply.go one app: gather, decide, apply
//	record.go recorder.go       Git out: what is on record, and the next commit of it
//	revert.go tidy.go shown.go  what follows the record: reverts, branches of proposals, a forge
//	report.go                   the values of package report, for publish and views
package reconciler
