// Package routes splits a release's requests. It decides which pods Services select. It also decides the weights and
// matches that package traffic writes into routers' objects.
package routes
