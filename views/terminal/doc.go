// Package terminal draws what there is to see as text: an app and its release, lists, history, plans, what validate and
// doctor find. It is given values, a width and a time, and returns text; Screen draws over what it has drawn before.
//
// Its neighbours: views/status, views/plan and views/doctor, whose values it draws; cmd/gitrollout, which knows
// the terminal.
package terminal
