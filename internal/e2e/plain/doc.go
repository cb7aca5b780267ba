// Package plain compares the rendering of folders of manifests with kustomize's create command.
package plain
