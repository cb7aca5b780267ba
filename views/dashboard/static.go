package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// Export returns pages that need no server, by file: index.html, app-NAME.html for each app and, with stages,
// apps.html. They show only the data that needs no sign-in. Ages refer to the time "at". The text "of" names the
// commits.
func (s *Server) Export(ctx context.Context, of string, at time.Time) (pages map[string][]byte, err error) {
	pages, staged, list := map[string][]byte{}, s.Board.Staged.Load(), "index.html"
	add := func(file, name, app string, answers map[string]any) {
		var text bytes.Buffer
		export := inlined(name)
		export["Of"], export["At"], export["Answers"] = of, at, answers
		err = cmp.Or(err, s.pages.ExecuteTemplate(&text, name+".html", view{Cluster: s.Board.Cluster, App: app,
			Staged: staged, Home: "index.html", List: "apps.html", Export: export}))
		pages[file] = text.Bytes()
	}
	event := func(app string) any { m, _, _ := s.next(&http.Request{}, app, 0); return m.data }
	if staged {
		f, _, err := s.Fleet(ctx)
		if err != nil {
			return nil, err
		}
		list = "apps.html"
		add("index.html", "stages", "", map[string]any{"/api/v1/fleet": urgent(f, "", math.MaxInt)})
	}
	add(list, "fleet", "", map[string]any{"/api/v1/events?": event("")})
	for _, app := range s.Board.Names() {
		past, err := s.Records.History(ctx, app)
		if err != nil {
			return nil, err
		}
		add("app-"+app+".html", "app", app, map[string]any{"/api/v1/events?app=" + url.QueryEscape(app): event(app),
			"/api/v1/apps/" + url.PathEscape(app) + "/history": past})
	}
	return pages, err
}

func inlined(page string) map[string]any {
	asset := func(name string) []byte { data, _ := embedded.ReadFile("assets/" + name); return data }
	base64 := base64.StdEncoding.EncodeToString
	hash := func(code []byte) string { sum := sha256.Sum256(code); return " 'sha256-" + base64(sum[:]) + "'; " }
	style, script, ofFiles := asset("style.css"), []byte(nil), regexp.MustCompile(`(?m)^import [^;]*;\n|^export `)
	for _, module := range []string{"common.js", "charts.js", page + ".js"} {
		script = append(script, ofFiles.ReplaceAll(asset(module), nil)...)
	}
	return map[string]any{"Style": template.CSS(style), "Script": template.JS(script),
		"Icon": template.URL("data:image/svg+xml;base64," + base64(asset("icon.svg"))),
		"Policy": "default-src 'none'; script-src" + hash(script) + "style-src" + hash(style) +
			"img-src data:; form-action 'none'; base-uri 'none'"}
}
