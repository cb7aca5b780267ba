// Package routes splits the requests of a release. It determines the pods that Services select, and the weights and
// matches that package traffic writes into the routers' objects.
package routes
