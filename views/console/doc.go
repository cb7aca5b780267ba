// Package console is a user's Session for commands and dashboard.
package console
