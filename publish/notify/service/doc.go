// Package service sends a message to a service, once. Each service is one file and one line of the table. notify/worker
// decides by the Failure about a retry. Errors contain no credentials, and no addresses that are credentials.
package service
