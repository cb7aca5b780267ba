// Package service sends messages: one file for each service, with one line in the table. A service is asked once; when
// to ask again is for notify/worker to say, by what a Failure tells.
//
// No error of this package holds a credential, nor an address that is one.
package service
