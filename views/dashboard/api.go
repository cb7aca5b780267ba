package dashboard

import (
	"net/http"

	"gitrollout.dev/gitrollout/views/status"
)

// listApps is GET /api/v1/apps: a status.Listing.
func (s *Server) listApps(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, s.Board.Listing())
}

// showApp is GET /api/v1/apps/{app}: a status.App with what the page shows besides.
func (s *Server) showApp(w http.ResponseWriter, r *http.Request) {
	d, _, found := s.Board.app(r.PathValue("app"))
	if !found {
		s.unknown(w, r.PathValue("app"))
		return
	}
	send(w, http.StatusOK, d)
}

// showDiff is GET /api/v1/apps/{app}/diff.
func (s *Server) showDiff(w http.ResponseWriter, r *http.Request) {
	if _, _, found := s.Board.app(r.PathValue("app")); !found {
		s.unknown(w, r.PathValue("app"))
		return
	}
	d, err := s.Records.Diff(r.Context(), r.PathValue("app"))
	if err != nil {
		failed(w, err)
		return
	}
	if d.Objects == nil {
		d.Objects = []Object{}
	}
	send(w, http.StatusOK, d)
}

// showHistory is GET /api/v1/apps/{app}/history.
func (s *Server) showHistory(w http.ResponseWriter, r *http.Request) {
	if _, _, found := s.Board.app(r.PathValue("app")); !found {
		s.unknown(w, r.PathValue("app"))
		return
	}
	past, err := s.Records.History(r.Context(), r.PathValue("app"))
	if err != nil {
		failed(w, err)
		return
	}
	if past.Releases == nil {
		past.Releases = []status.Past{}
	}
	send(w, http.StatusOK, past)
}

func (s *Server) unknown(w http.ResponseWriter, app string) {
	fail(w, http.StatusNotFound, "cluster "+s.Board.Cluster()+" has no app "+app)
}
