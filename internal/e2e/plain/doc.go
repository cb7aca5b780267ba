// Package plain checks that gitrollout renders folders of manifests as `kustomize create` and `kustomize build` do, and
// substitutes variables as Flux does.
package plain
