// Package traefik pins the Traefik that the tests of internal/proxytest run,
// the version of the Gateway API that this Traefik is built with, and Istio's
// API: internal/crds reads their CustomResourceDefinitions from the module
// cache. It is a module of its own, so that none of it is in the product's
// go.mod.
package traefik

// Nothing else imports Istio's API. The import is what keeps it in go.mod.
import _ "istio.io/api/label"
