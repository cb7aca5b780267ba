// Package policy checks an app's objects against the cluster team's policy (rollout.Policy): rules about files, kinds,
// namespaces, releases and numbers of objects. The package is pure.
package policy
