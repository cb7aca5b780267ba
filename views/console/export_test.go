package console

func (r *Records) Note() string { return r.world.Note } // returns the note of the session behind the records

// IsFree reports whether the records' lock is free.
func (r *Records) IsFree() bool {
	if !r.mu.TryLock() {
		return false
	}
	r.mu.Unlock()
	return true
}

var (
	DiffOf   = diffOf   // compares renders without a repository
	IsIn     = isIn     // reports whether an Event's object has one of an app's titles
	TitlesOf = titlesOf // returns the titles of an app's objects
)
