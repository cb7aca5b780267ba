// Package render turns one commit into the objects that a cluster should hold. It runs kustomize in process over the
// commit's tree, takes the Rollout documents out of the result, and returns a rollout.Render. In this package only the
// inspection before a build bounds the build's memory and time; package worker builds in processes with limits.
//
// Only package render imports kustomize. It reads only the given Tree: no disk, network, environment or
// program. Before kustomize runs, render refuses by name every other source that kustomize could read.
package render
