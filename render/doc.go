// Package render turns one commit into the objects that a cluster should hold: it runs kustomize in process over the
// commit's tree, takes the Rollout documents out of the result, and hands back a rollout.Render.
//
// In process nothing but the look beforehand bounds what a build takes; package
// worker builds in processes that have a bound.
//
// It is the only package that imports kustomize, and it reads nothing but the Tree that it is given: no disk, no
// network, no environment, no program. What kustomize could reach beyond that is refused by name before it runs.
package render
