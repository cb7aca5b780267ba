// Package dashboard serves pages and JSON about releases. Server-sent events keep the pages current.
package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

//go:embed assets
var embedded embed.FS

// Records reads data that the Board lacks. Pages show a method's error.
type Records interface {
	Diff(ctx context.Context, app string) (Diff, error)
	Objects(ctx context.Context, app string) (Diff, error) // desired objects
	History(ctx context.Context, app string) (History, error)
	Pod(ctx context.Context, pod status.VersionPod) Pod
}

// Pod has a pod's events. For an unready pod, it also has the logs' last lines.
type Pod struct {
	Events []status.Transition `json:"events,omitempty"`
	Logs   []Object            `json:"logs,omitempty"`  // by container
	Notes  []string            `json:"notes,omitempty"` // which data is missing, and why
}

// Diff holds a release's changed objects. Secrets' values are masked.
type Diff struct {
	From    string   `json:"from,omitempty"` // stable commit
	To      string   `json:"to,omitempty"`   // the release's commit, or ""
	Objects []Object `json:"objects"`
	Note    string   `json:"note,omitempty"`
}

// Object is a Kubernetes object, the change of an object, or a container's log.
type Object struct {
	Name string `json:"name"`           // kind and name, or container
	Verb string `json:"verb,omitempty"` // added, removed or changed
	Text string `json:"text"`           // YAML, unified diff, or log lines
}

// History is an app's history on the state branch.
type History struct {
	status.History
	Links Links `json:"links"`
}

// Links are URL patterns of the forge, or "". {} stands for a commit id or branch.
type Links struct {
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"` // pull requests of a branch
}

// Options configure a Server.
type Options struct {
	Board   *Board
	Records Records
	// Fleet returns the records of all clusters, and their ETag.
	Fleet func(ctx context.Context) (f status.Fleet, tag string, err error)
	Now   func() time.Time
	// Secure limits cookies to https.
	Secure bool
	Access *Access // nil if read-only
	Actor  Actor   // nil if read-only
	OIDC   *OIDC   // nil for tokens only
}

// Server serves the pages and the API.
type Server struct {
	Options
	pages    *template.Template
	mux      *http.ServeMux
	sessions *sessions
	origin   *http.CrossOriginProtection
	seeing   sync.Mutex
	seen     func(status.App) status.App // locked by seeing
}

// New returns a Server, an http.Handler.
func New(o Options) (*Server, error) {
	symbol := func(p rollout.Phase) string { return symbols[p] }
	pages, err := template.New("").Funcs(template.FuncMap{"symbol": symbol}).ParseFS(embedded, "assets/*.html")
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, pages: pages, mux: http.NewServeMux(), sessions: newSessions(o.Now, o.Secure),
		origin: http.NewCrossOriginProtection(), seen: status.Seeing()}
	s.mux.HandleFunc("GET /{$}", s.page("fleet"))
	s.mux.HandleFunc("GET /apps", s.page("fleet"))
	s.mux.HandleFunc("GET /apps/{app}", s.page("app"))
	s.mux.HandleFunc("GET /plain", s.plain)
	s.mux.Handle("GET /assets/{file}", http.FileServerFS(embedded)) // {file} matches no folder, so no folder is listed
	s.mux.HandleFunc("GET /api/v1/apps", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, s.Board.Listing())
	})
	s.mux.HandleFunc("GET /api/v1/apps/{app}", s.ofApp(func(w http.ResponseWriter, r *http.Request, app Detail) {
		send(w, http.StatusOK, s.seenBy(r, app))
	}))
	s.mux.HandleFunc("GET /api/v1/apps/{app}/diff", s.forPeople("changes",
		"gitrollout plan --base STABLE --head RELEASE", showDiff(s.Records.Diff)))
	s.mux.HandleFunc("GET /api/v1/apps/{app}/objects", s.forPeople("objects",
		"gitrollout render APP --with-state", showDiff(s.Records.Objects)))
	s.mux.HandleFunc("GET /api/v1/apps/{app}/history", s.ofApp(s.showHistory))
	s.mux.HandleFunc("GET /api/v1/apps/{app}/pods/{namespace}/{pod}", s.forPeople("events and logs",
		"gitrollout events APP, or: gitrollout logs APP", s.showPod))
	s.mux.HandleFunc("GET /api/v1/fleet", s.showFleet)
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

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP sets security headers, and refuses other sites' unsafe requests.
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

func (s *Server) page(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		app, known, staged, page := r.PathValue("app"), s.Board.Names(), s.Board.Staged.Load(), name
		missing := app != "" && len(known) > 0 && !slices.Contains(known, app) // an empty board may be incomplete
		var near []string
		if missing {
			near = rollout.Closest(app, known)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusNotFound)
		}
		if staged && r.URL.Path == "/" {
			page = "stages"
		}
		s.render(w, page+".html", view{Cluster: s.Board.Cluster, App: app, Missing: missing, Staged: staged, Near: near,
			Script: page, Home: "/", List: "/apps"})
	}
}

type view struct {
	Cluster, App    string
	Missing, Staged bool
	Near            []string
	Script          string         // "" for none
	Home, List      string         // paths of the first page and the list of apps
	Export          map[string]any // nil on a live server
}

func (s *Server) plain(w http.ResponseWriter, r *http.Request) {
	q, phase := r.FormValue("q"), r.FormValue("phase")
	all, _, _, _ := s.Board.since(0)
	all.Apps = slices.DeleteFunc(all.Apps, func(row row) bool {
		return phase != "" && string(row.Phase) != phase || lacks(row.searched(), q)
	})
	s.render(w, "plain.html", struct {
		fleet
		Query, Phase string
		Phases       []rollout.Phase
	}{all, q, phase, rollout.Phases()})
}

func (s *Server) render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.pages.ExecuteTemplate(w, name, data)
}

func send(w http.ResponseWriter, code int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(data)
}

func fail(w http.ResponseWriter, code int, message string) {
	send(w, code, map[string]string{"error": message})
}

func sendRead(w http.ResponseWriter, data any, err error) {
	switch {
	case err == nil:
		send(w, http.StatusOK, data)
	case !errors.Is(err, context.Canceled):
		fail(w, http.StatusBadGateway, err.Error())
	}
}
