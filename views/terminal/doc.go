// Package terminal draws views as text: apps and releases, lists, history, plans, and findings of validate and
// doctor, from values, a width and a time. Screen redraws over earlier output.
package terminal
