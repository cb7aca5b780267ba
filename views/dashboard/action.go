package dashboard

import (
	"context"
	"net/http"
	"slices"

	"gitrollout.dev/gitrollout/reconciler/propose"
)

// Actor performs users' actions. The page shows text or error.
type Actor interface {
	Act(ctx context.Context, who Person, app string, a propose.Action) (said string, err error)
}

// act refuses other sites' requests: ServeHTTP checks Origin, receive the content type, and act compares X-CSRF-Token
// with the session's token.
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
