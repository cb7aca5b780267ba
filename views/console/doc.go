// Package console has the Session of commands and the dashboard, which reads and changes apps.
package console
