// Package policy judges what an app has in Git by the policy of the team that runs the cluster: the rules of the app's
// project about files, kinds, namespaces, releases and numbers.
//
// It is pure: the render is the input, and an error is all that comes of it. Its neighbours: rollout has the policy's
// form, render makes the render, and reconciler/source, the commands and views/doctor ask.
package policy
