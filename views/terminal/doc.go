// Package terminal draws views as text: apps and releases, lists, history, plans, and the findings of validate and
// doctor. Its inputs are values, a width and a time. Screen redraws over earlier output.
package terminal
