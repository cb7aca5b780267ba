// Package call makes HTTP requests of other people's servers: metric providers,
// forges, and the services that people are notified by.
//
// What holds for all of them is here, once: no credential is in an error or is taken to another host, an answer has a
// bound, what may pass is tried again, and a refusal is told in the server's own words. Its callers are
// analysis/provider, publish/forge and publish/notify/service.
package call
