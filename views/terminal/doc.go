// Package terminal draws the commands' output as text. A view depends on its data and a Look. Screen redraws views.
package terminal
