package git

// Narrow divides the limits of received and kept packs.
func (r *Repo) Narrow(times int64) *Repo { r.server.Narrow(times); return r }
