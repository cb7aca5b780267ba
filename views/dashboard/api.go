package dashboard

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

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

func (s *Server) mayRead(r *http.Request, app string) (code int, why string) {
	if !s.acts() {
		return http.StatusForbidden, "this page has no sign-in"
	}
	rules, err := s.Access.read()
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	who, _, ok := s.signedIn(r, rules)
	switch {
	case !ok:
		return http.StatusUnauthorized, "sign in first"
	case len(rules.may(who, app)) == 0:
		return http.StatusForbidden, who.Email + " has no right to " + app
	}
	return http.StatusOK, ""
}

func (s *Server) seenBy(r *http.Request, d Detail) Detail {
	s.seeing.Lock()
	defer s.seeing.Unlock()
	d.App = s.seen(d.App) // the Board lacks Progress.Sees, which is computed only for open pages
	if code, _ := s.mayRead(r, d.App.App); code != http.StatusOK {
		d.Metrics = withoutQueries(d.Metrics)
	}
	return d
}

func withoutQueries(all []status.Metric) []status.Metric {
	return slices.Compact(rollout.Mapped(all, func(m status.Metric) status.Metric { m.Query = ""; return m }))
}

// forPeople serves data that may contain credentials, so users need a right to the app. Errors name the equivalent
// command, with the app's name in place of APP.
func (s *Server) forPeople(what, command string, answer func(http.ResponseWriter, *http.Request, Detail),
) http.HandlerFunc {
	return s.ofApp(func(w http.ResponseWriter, r *http.Request, app Detail) {
		name := app.App.App
		if code, why := s.mayRead(r, name); code != http.StatusOK {
			fail(w, code, what+" are only for signed-in people: "+why+"; or run: "+strings.ReplaceAll(command, "APP", name))
			return
		}
		answer(w, r, app)
	})
}

func showDiff(of func(ctx context.Context, app string) (Diff, error)) func(http.ResponseWriter, *http.Request, Detail) {
	return func(w http.ResponseWriter, r *http.Request, app Detail) {
		d, err := of(r.Context(), app.App.App)
		if d.Objects == nil {
			d.Objects = []Object{}
		}
		sendRead(w, d, err)
	}
}

func (s *Server) showHistory(w http.ResponseWriter, r *http.Request, app Detail) {
	past, err := s.Records.History(r.Context(), app.App.App)
	if past.Releases == nil {
		past.Releases = []status.Past{}
	}
	sendRead(w, past, err)
}

func (s *Server) showPod(w http.ResponseWriter, r *http.Request, app Detail) {
	pod, found := rollout.Find(status.Version("").Of(app.App), func(p status.VersionPod) bool {
		return p.Namespace == r.PathValue("namespace") && p.Name == r.PathValue("pod")
	})
	if !found {
		fail(w, http.StatusNotFound, "app "+app.App.App+" has no pod "+r.PathValue("pod")+" any more")
		return
	}
	send(w, http.StatusOK, s.Records.Pod(r.Context(), pod))
}

func (s *Server) unknown(w http.ResponseWriter, app string) {
	text := "cluster " + s.Board.Cluster + " has no app " + app
	if near := rollout.DidYouMean(app, s.Board.Names()); near != "" {
		text += "; " + near
	}
	fail(w, http.StatusNotFound, text)
}

// Actor performs users' actions. The page shows the text or the error.
type Actor interface {
	Act(ctx context.Context, who Person, app string, a propose.Action) (said string, err error)
}

// act refuses other sites' requests. ServeHTTP checks Origin, receive checks the content type, and act compares
// X-CSRF-Token with the session's token.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	var a propose.Action
	rules := s.receive(w, r, &a)
	if rules == nil {
		return
	}
	who, of, ok := s.signedIn(r, rules)
	app := r.PathValue("app")
	switch {
	case !ok:
		fail(w, http.StatusUnauthorized, "sign in first")
		return
	case of != nil && !same(of.CSRF, r.Header.Get("X-CSRF-Token")):
		fail(w, http.StatusForbidden, "the request does not come from this page; load it again")
		return
	case !slices.Contains(propose.Verbs(), a.Verb):
		fail(w, http.StatusBadRequest, "there is no verb "+string(a.Verb))
		return
	case !slices.Contains(rules.may(who, app), a.Verb):
		fail(w, http.StatusForbidden, who.Email+" may not "+string(a.Verb)+" "+app)
		return
	}
	if _, _, found := s.Board.app(app); !found {
		s.unknown(w, app)
		return
	}
	said, err := s.Actor.Act(r.Context(), who, app, a)
	if err != nil {
		fail(w, http.StatusConflict, err.Error())
		return
	}
	send(w, http.StatusOK, map[string]string{"said": said})
}
