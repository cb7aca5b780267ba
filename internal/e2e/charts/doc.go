// Package charts compares what charts are rendered to with what the helm program and kustomize's own build command make
// of them.
package charts
