package dashboard

import (
	"context"
	"net/http"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// listApps handles GET /api/v1/apps. It responds with a status.Listing.
func (s *Server) listApps(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, s.Board.Listing())
}

// ofApp returns a handler that calls "answer" with the app in the URL's path. For an unknown app, it responds 404.
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

func showDiff(of func(ctx context.Context, app string) (Diff, error)) func(http.ResponseWriter, *http.Request, Detail) {
	return func(w http.ResponseWriter, r *http.Request, app Detail) {
		d, err := of(r.Context(), app.App.App)
		if err != nil {
			failed(w, err)
			return
		}
		if d.Objects == nil {
			d.Objects = []Object{}
		}
		send(w, http.StatusOK, d)
	}
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

// showPod handles GET /api/v1/apps/{app}/pods/{namespace}/{pod}. Only signed-in users with a right to the app get logs
// and events, because both may contain secrets.
func (s *Server) showPod(w http.ResponseWriter, r *http.Request, app Detail) {
	name := app.App.App
	if !s.acts() {
		fail(w, http.StatusForbidden, "events and logs are only for signed-in people, and this page has no sign-in; "+
			"run: gitrollout events "+name+", or: gitrollout logs "+name)
		return
	}
	rules := s.rules(w)
	if rules == nil {
		return
	}
	who, _, ok := s.signedIn(r, rules)
	pod, found := rollout.Find(status.Version("").Of(app.App), func(p status.VersionPod) bool {
		return p.Namespace == r.PathValue("namespace") && p.Name == r.PathValue("pod")
	})
	switch {
	case !ok:
		fail(w, http.StatusUnauthorized, "events and logs are only for signed-in people: sign in first")
	case len(rules.may(who, name)) == 0:
		fail(w, http.StatusForbidden, who.Email+" has no right to "+name+", so its events and logs are not shown")
	case !found:
		fail(w, http.StatusNotFound, "app "+name+" has no pod "+r.PathValue("pod")+" any more")
	default:
		send(w, http.StatusOK, s.Records.Pod(r.Context(), pod))
	}
}

func (s *Server) unknown(w http.ResponseWriter, app string) {
	text := "cluster " + s.Board.Cluster() + " has no app " + app
	if near := rollout.DidYouMean(app, s.Board.Names()); near != "" {
		text += "; " + near
	}
	fail(w, http.StatusNotFound, text)
}
