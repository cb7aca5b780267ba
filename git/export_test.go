package git

// Narrow divides the bounds on received and stored packs, so that tests can use small files.
func (r *Repo) Narrow(times int64) *Repo { r.server.Narrow(times); return r }
