// Package dashboard serves web pages and JSON about a cluster's releases: a page for all apps and a page for each app.
// Server-sent events keep the pages current. The package decides nothing.
package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

//go:embed assets
var embedded embed.FS

// Records reads page data that the Board does not hold. The pages show the errors of these reads.
type Records interface {
	Diff(ctx context.Context, app string) (Diff, error)
	History(ctx context.Context, app string) (History, error)
}

// Diff holds a release's changes by object. Values of Secrets are masked.
type Diff struct {
	From    string   `json:"from,omitempty"` // the stable commit
	To      string   `json:"to,omitempty"`   // the release's commit; "" if there is none to compare
	Objects []Object `json:"objects"`
}

// Object is the change of one object.
type Object struct {
	Name string `json:"name"` // kind and name
	Verb string `json:"verb"` // added, removed or changed
	Text string `json:"text"` // a unified diff
}

// History is an app's history on the state branch.
type History struct {
	status.History
	Links Links `json:"links"`
}

// Links are URL patterns of the forge, with {} for the commit id or branch name. They are "" without a forge.
type Links struct {
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"` // the pull requests of a branch
}

// Options are a Server's dependencies and settings.
type Options struct {
	Board   *Board
	Records Records
	Now     func() time.Time
	// Secure restricts cookies to https.
	Secure bool
	Access *Access // nil: read-only
	Actor  Actor   // nil: read-only
	OIDC   *OIDC   // nil: people sign in with tokens only
}

// Server serves the pages and the API.
type Server struct {
	Options
	pages    *template.Template
	mux      *http.ServeMux
	sessions *sessions
	origin   *http.CrossOriginProtection
}

// New returns a Server. It starts nothing.
func New(o Options) (*Server, error) {
	pages, err := template.New("").Funcs(template.FuncMap{"symbol": symbol}).ParseFS(embedded, "assets/*.html")
	if err != nil {
		return nil, err
	}
	sealed, err := newSessions(o.Now, o.Secure)
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, pages: pages, mux: http.NewServeMux(), sessions: sealed,
		origin: http.NewCrossOriginProtection()}
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, err
	}
	s.mux.HandleFunc("GET /{$}", s.page("fleet"))
	s.mux.HandleFunc("GET /apps/{app}", s.page("app"))
	s.mux.HandleFunc("GET /plain", s.plain)
	s.mux.Handle("GET /assets/", http.StripPrefix("/assets/", assets(http.FileServerFS(files))))
	s.mux.HandleFunc("GET /api/v1/apps", s.listApps)
	s.mux.HandleFunc("GET /api/v1/apps/{app}", s.ofApp(s.showApp))
	s.mux.HandleFunc("GET /api/v1/apps/{app}/diff", s.ofApp(s.showDiff))
	s.mux.HandleFunc("GET /api/v1/apps/{app}/history", s.ofApp(s.showHistory))
	s.mux.HandleFunc("GET /api/v1/events", s.events)
	s.mux.HandleFunc("GET /api/v1/me", s.me)
	if s.acts() {
		s.mux.HandleFunc("POST /api/v1/apps/{app}/actions", s.act)
		s.mux.HandleFunc("POST /api/v1/session", s.signIn)
		s.mux.HandleFunc("DELETE /api/v1/session", s.signOut)
		if s.OIDC != nil {
			s.mux.HandleFunc("GET /oidc/start", s.oidcStart)
			s.mux.HandleFunc("GET /oidc/callback", s.oidcCallback)
		}
	}
	return s, nil
}

func (s *Server) acts() bool { return s.Actor != nil && s.Access != nil }

// policy is the Content-Security-Policy. It allows only the page's own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := s.origin.Check(r); err != nil {
		fail(w, http.StatusForbidden, "the request comes from another site")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// assets serves files, but no listings of folders.
func assets(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" || r.URL.Path[len(r.URL.Path)-1] == '/' {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) page(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		app, known := r.PathValue("app"), s.Board.Names()
		missing := app != "" && len(known) > 0 && !slices.Contains(known, app) // an empty board is still being filled
		var near []string
		if missing {
			near = rollout.Closest(app, known)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusNotFound)
		}
		s.render(w, name+".html", struct {
			Cluster, App string
			Missing      bool
			Near         []string
		}{s.Board.Cluster(), app, missing, near})
	}
}

// plain serves the fleet for browsers without scripts.
func (s *Server) plain(w http.ResponseWriter, r *http.Request) {
	q, phase := r.FormValue("q"), r.FormValue("phase")
	rows := slices.DeleteFunc(s.Board.Rows(), func(row Row) bool {
		return !row.matches(q) || phase != "" && string(row.Phase) != phase
	})
	s.render(w, "plain.html", struct {
		Cluster, Query, Phase string
		Phases                []rollout.Phase
		Rows                  []Row
	}{s.Board.Cluster(), q, phase, rollout.Phases(), rows})
}

func (s *Server) render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.pages.ExecuteTemplate(w, name, data) // fails only if the browser is gone
}

func send(w http.ResponseWriter, code int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(data) // fails only if the browser is gone
}

func fail(w http.ResponseWriter, code int, message string) {
	send(w, code, map[string]string{"error": message})
}

// failed responds with an error of Git, unless the browser has cancelled its request.
func failed(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	fail(w, http.StatusBadGateway, err.Error())
}
