// Package policy checks an app's objects against the policy of the team that runs the cluster. A policy has rules about
// files, kinds, namespaces, releases and numbers of objects, grouped in projects. The package is pure: it takes a
// render and returns an error. Package rollout defines the policy's form.
package policy
