// Package terminal draws the commands' output as text. A Look has the drawing options. A Screen redraws changed text.
package terminal
