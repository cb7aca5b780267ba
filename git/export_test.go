package git

// Narrow makes the bounds of what is taken and kept of a pack so many times smaller than they usually are.
func (r *Repo) Narrow(times int64) *Repo { r.server.Narrow(times); return r }
