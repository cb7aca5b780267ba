// Package terminal draws commands' output as text. A Look has the drawing options, and a Screen redraws changed text.
package terminal
