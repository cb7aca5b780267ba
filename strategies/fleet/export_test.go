package fleet

// Ranked returns the stage's clusters by rank, and this cluster's index.
func (p Place) Ranked() ([]string, int) { return p.ranked() }
