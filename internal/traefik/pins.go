// Package traefik pins the Traefik for the tests of internal/proxytest, the version of the Gateway API in this Traefik,
// and Istio's API. internal/crds reads their CustomResourceDefinitions from the module cache. It is a separate module,
// so that the product's go.mod has none of them.
package traefik

// Nothing else imports Istio's API. The import keeps it in go.mod.
import _ "istio.io/api/label"
