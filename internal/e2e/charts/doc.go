// Package charts compares gitrollout's rendering of charts with the helm program and with kustomize's build command.
package charts
