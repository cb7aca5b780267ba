// Package policy checks an app's objects against the policy of the team that runs the cluster: the rules of the app's
// project about files, kinds, namespaces, releases and numbers.
//
// It is pure: it takes a render and returns an error. Its neighbours: rollout has the policy's form, render makes the
// render, and reconciler/source, the commands and views/doctor call it.
package policy
