// Package terminal draws the commands' output as text. Each function draws data with a Look. A Screen redraws the text.
package terminal
