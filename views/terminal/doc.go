// Package terminal draws apps, lists, history, plans, and findings of validate and doctor as text. A view depends only
// on its data and a Look. Screen redraws a view over its earlier output.
package terminal
