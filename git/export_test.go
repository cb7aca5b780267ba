package git

import "github.com/go-git/go-git/v5/plumbing"

// Message returns the commit's full message.
func (s *Snapshot) Message() (string, error) {
	c, err := s.store.commit(plumbing.NewHash(s.commit.ID))
	if err != nil {
		return "", err
	}
	return c.Message, nil
}

// Narrow divides the size limits for packs by a number, so that tests can use smaller files.
func (r *Repo) Narrow(times int64) *Repo { r.server.Narrow(times); return r }
