// Package render turns one commit into the objects that a cluster should hold. It runs kustomize in process over the
// commit's tree, takes the Rollout documents out of the result, and returns a rollout.Render. Here only the inspection
// beforehand bounds a build's memory and time; package worker builds in bounded processes.
//
// It is the only package that imports kustomize. It reads only the given Tree: no disk, network, environment or
// program. Anything else that kustomize could read is refused by name before it runs.
package render
