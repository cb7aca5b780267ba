// Package plain compares how folders of manifests are built with what kustomize's own create command makes of them.
package plain
