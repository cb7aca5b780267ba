package dashboard

import (
	"net/http"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// listApps handles GET /api/v1/apps. It responds with a status.Listing.
func (s *Server) listApps(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, s.Board.Listing())
}

// ofApp returns a handler that calls "answer" with the app in the URL's path. If there is no such app, it responds 404.
func (s *Server) ofApp(answer func(w http.ResponseWriter, r *http.Request, app Detail)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, _, found := s.Board.app(r.PathValue("app"))
		if !found {
			s.unknown(w, r.PathValue("app"))
			return
		}
		answer(w, r, d)
	}
}

// showApp handles GET /api/v1/apps/{app}. It responds with a Detail.
func (s *Server) showApp(w http.ResponseWriter, _ *http.Request, app Detail) {
	send(w, http.StatusOK, app)
}

func (s *Server) showDiff(w http.ResponseWriter, r *http.Request, app Detail) {
	d, err := s.Records.Diff(r.Context(), app.App.App)
	if err != nil {
		failed(w, err)
		return
	}
	if d.Objects == nil {
		d.Objects = []Object{}
	}
	send(w, http.StatusOK, d)
}

func (s *Server) showHistory(w http.ResponseWriter, r *http.Request, app Detail) {
	past, err := s.Records.History(r.Context(), app.App.App)
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
	text := "cluster " + s.Board.Cluster() + " has no app " + app
	if near := rollout.DidYouMean(app, s.Board.Names()); near != "" {
		text += "; " + near
	}
	fail(w, http.StatusNotFound, text)
}
