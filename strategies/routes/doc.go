// Package routes splits a release's requests: the pods that Services select, and the weights and matches that package
// traffic writes into the routers' objects.
package routes
