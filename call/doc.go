// Package call sends HTTP requests to third-party servers for the packages analysis/provider, publish/forge and
// publish/notify/service. Its errors contain the server's message, but no credentials. It sends no credentials to
// another host after a redirect, limits the size of responses, and retries after transient errors.
package call
