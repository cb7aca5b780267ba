// Package routes splits the requests of a release: the pods that its Services select, and the weights and matches that
// package traffic lays over the routers' objects.
package routes
