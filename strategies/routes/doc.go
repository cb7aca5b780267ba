// Package routes splits a release's requests. It decides which pods Services select, and which weights and matches
// package traffic writes into the routers' objects.
package routes
