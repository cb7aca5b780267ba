// Package ext stands in for Traefik's package of the same import path. Traefik
// embeds its types so that a product built on top of it can add fields; its own
// are empty. It is a module that is not published, so Traefik's go.mod replaces
// it with a folder, and that of internal/traefik with this one.
package ext

// HTTP is embedded in the configuration of a router with middlewares.
type HTTP struct{}

// Router is embedded in the configuration of an HTTP router.
type Router struct{}
