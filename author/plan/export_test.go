package plan

import "gitrollout.dev/gitrollout/rollout"

func (p *Plan) AddApp(a App, changes bool) { p.add(a, changes) } // adds an app to a plan

var LongestRun = longestRun // returns the longest run of a rune

func (p *Plan) Finish()                                     { p.finish() }                // sorts and counts the apps
func (s *Sides) Adopted(a *App, head *rollout.Render) error { return s.adopted(a, head) } // changes the summary of a first release
