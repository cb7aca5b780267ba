// Package terminal draws what there is to see as text: an app and its release, lists, history, plans, what validate and
// doctor find. It is given values, a width and a time, and returns text; Screen draws over what it has drawn before.
package terminal
