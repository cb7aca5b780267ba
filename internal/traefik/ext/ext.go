// Package ext stands in for the package of Traefik's repository that has the same import path. Traefik embeds these
// empty types, so that a product built on Traefik can add fields. The package's module is not published. Traefik's
// go.mod replaces the module with a folder of Traefik's repository. The go.mod of internal/traefik replaces the module
// with this folder.
package ext

// HTTP is embedded in the configuration of a router with middlewares.
type HTTP struct{}

// Router is embedded in the configuration of an HTTP router.
type Router struct{}
