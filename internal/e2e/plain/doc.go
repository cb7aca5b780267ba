// Package plain compares gitrollout's rendering of folders of manifests with kustomize's create command.
package plain
