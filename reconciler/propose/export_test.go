package propose

func (c Change) Uses() []string           { return c.uses }  // returns the files that decide whether two proposals can share a branch
func (c *Change) SetUses(files ...string) { c.uses = files } // makes a Change without a render

func Scaled(v Reversion) Reversion { v.scaled = true; return v } // marks a Reversion of an app whose replicas differ from the older commit

var (
	Joined    = joined    // joins apps in a sentence
	SubjectOf = subjectOf // shortens a subject for many apps
)
