// Package render turns a commit's files into the objects that a cluster should have. It runs kustomize in process on
// the given Tree only, with no disk, network, environment or program, and refuses any other source. It first inspects
// the files, to limit memory and time; package worker has hard limits.
package render
