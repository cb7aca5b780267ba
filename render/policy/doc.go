// Package policy checks an app's objects against the policy of the team that runs the cluster: its project's rules
// about files, kinds, namespaces, releases and numbers.
//
// It is pure: it takes a render and returns an error. rollout has the policy's form; reconciler/source, the commands
// and views/doctor call it.
package policy
