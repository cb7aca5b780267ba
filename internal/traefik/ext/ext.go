// Package ext replaces Traefik's package of the same import path. Traefik embeds its types so that a product built on
// Traefik can add fields; Traefik's types are empty. That module is not published, so Traefik's go.mod replaces it with
// a folder, and the go.mod of internal/traefik with this folder.
package ext

// HTTP is embedded in the configuration of a router with middlewares.
type HTTP struct{}

// Router is embedded in the configuration of an HTTP router.
type Router struct{}
