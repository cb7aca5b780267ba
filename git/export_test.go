package git

// Narrow divides the size limits for packs by a number, so that tests can use smaller files.
func (r *Repo) Narrow(times int64) *Repo { r.server.Narrow(times); return r }
