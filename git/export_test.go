package git

// Narrow divides the size limits of packs by a number, so that tests can use small files.
func (r *Repo) Narrow(times int64) *Repo { r.server.Narrow(times); return r }
