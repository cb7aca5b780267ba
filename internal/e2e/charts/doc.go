// Package charts checks that gitrollout renders charts as `helm template` and `kustomize build` do.
package charts
