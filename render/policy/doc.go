// Package policy checks an app's objects against the policy of the team that runs the cluster. A project has rules
// about files, kinds, namespaces, releases and numbers of objects. The package is pure. Package rollout defines the
// policy's format.
package policy
