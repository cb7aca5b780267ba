package source

func (r *Reader) Configs() int { return len(r.configs) }                   // returns the number of kept configurations
func (e *Entries) Reread()     { e.others = map[string]map[string]bool{} } // makes Entries compare files again

var (
	IDOf     = idOf     // returns the id of a file
	RoutesOf = routesOf // lists the objects whose status the reconciler reads
	Missing  = missing  // explains a missing configuration
)
