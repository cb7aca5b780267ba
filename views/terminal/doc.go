// Package terminal draws commands' output as text.
package terminal
