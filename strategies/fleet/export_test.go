package fleet

// Ranked returns the stage's clusters by rank, and this cluster's index. Tests need all, because the text of a wait names only one cluster.
func (p Place) Ranked() ([]string, int) { return p.ranked() }
