// Package render turns one commit into the objects that a cluster should have. It runs kustomize in process over the
// commit's files. Then it takes the Rollout documents out of the result, and returns a rollout.Render. Before a build,
// it inspects the files, to limit memory and time. Package worker runs builds in processes with hard limits.
//
// No other package imports kustomize. Package render reads only the given Tree, and no disk, network, environment or
// program. Before kustomize runs, package render refuses every other source that kustomize could read.
package render
