package fleet

// Ranked returns the order of the stage's clusters, of which a wait names only one, and this cluster's index.
func (p Place) Ranked() ([]string, int) { return p.ranked() }
