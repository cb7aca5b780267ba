// Package policy checks an app's objects against the policy of the team that runs the cluster. A policy has projects. A
// project has rules about files, kinds, namespaces, releases and numbers of objects. The package is pure: it takes a
// render and returns an error. Package rollout defines the policy's format.
package policy
