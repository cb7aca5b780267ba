// Package console has the Session, with which commands and the dashboard read and change apps.
package console
