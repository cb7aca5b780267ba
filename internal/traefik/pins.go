// Package traefik pins versions in its go.mod: Traefik for the tests of internal/proxytest, the Gateway API that
// Traefik requires, and Istio's API. internal/crds reads their CustomResourceDefinitions from the module cache. The
// package is in a separate module, so that the product's go.mod does not require these modules.
package traefik

// No other file imports Istio's API. This import keeps the module in go.mod.
import _ "istio.io/api/label"
