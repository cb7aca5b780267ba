package dashboard_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// breakout is a text that tries to leave a script element, and to inject HTML.
const breakout = `</script><script>alert(1)</script><!--<script>-->` + "\u2028" + evil

// pastRecords has a history with foreign text. Visitors must not see the data from fakeRecords.
type pastRecords struct{ fakeRecords }

func (pastRecords) History(_ context.Context, app string) (dashboard.History, error) {
	return dashboard.History{History: status.History{App: app, Releases: []status.Past{{Subject: breakout, Started: exportTime}}}}, nil
}

var exportTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// exportOf returns the pages of an export by file name. The app shop has foreign text and a query. The app wiki has neither.
func exportOf(t *testing.T, isStaged bool) map[string]string {
	t.Helper()
	shop := appOf("shop", rollout.Paused, 25)
	shop.Waiting, shop.Release.Subject = breakout, breakout
	shop.Metrics = []status.Metric{{Metric: "errors", Provider: "prometheus", Query: "rate(secret_total[5m])"}}
	board := dashboard.NewBoard("prod", breakout)
	board.Staged.Store(isStaged)
	must(t, board.Show(exportTime, breakout, []status.App{shop, appOf("wiki", rollout.Healthy, 0)}, nil))
	staged := stagedOf("shop wiki", func(a *status.App) { a.Reason = breakout })
	server, err := dashboard.New(dashboard.Options{Board: board, Records: pastRecords{}, Fleet: answers(staged, nil), Now: time.Now,
		Access: &dashboard.Access{File: "gone"}, Actor: &fakeActor{}})
	must(t, err)
	pages, texts := map[string]string{}, map[string][]byte{}
	texts, err = server.Export(t.Context(), "main at ccccccc, state 5555555", exportTime)
	must(t, err)
	for file, text := range texts {
		pages[file] = string(text)
	}
	return pages
}

var (
	elements = regexp.MustCompile(`(?s)<(script|style)([^>]*)>(.*?)</`)
	policies = regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`)
	targets  = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
)

// inlined returns the content of a page's only style, data and script elements.
func inlined(t *testing.T, page string) (style, data, script string) {
	t.Helper()
	var kinds []string
	for _, m := range elements.FindAllStringSubmatch(page, -1) {
		switch kind := m[1] + m[2]; kind {
		case "style":
			style = m[3]
		case `script type="application/json" id="exported"`:
			data = m[3]
		case `script type="module"`:
			script = m[3]
		}
		kinds = append(kinds, m[1]+m[2])
	}
	compare.Check(t, []string{"style", `script type="application/json" id="exported"`, `script type="module"`}, kinds)
	return style, data, script
}

// TestExport checks the files of an export: two exports have the same bytes, all links lead to files of the export, and no page requests
// anything. Text from Git does not end a script element.
func TestExport(t *testing.T) {
	for isStaged, want := range map[bool][]string{
		false: {"app-shop.html", "app-wiki.html", "index.html"},
		true:  {"app-shop.html", "app-wiki.html", "apps.html", "index.html"},
	} {
		pages := exportOf(t, isStaged)
		compare.CheckNamed(t, "files", want, slices.Sorted(maps.Keys(pages)))
		compare.CheckNamed(t, "a second export", pages, exportOf(t, isStaged))
		for file, page := range pages {
			style, data, script := inlined(t, page)
			hash := func(text string) string {
				sum := sha256.Sum256([]byte(text))
				return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			}
			compare.CheckNamed(t, file+" policy", "default-src 'none'; script-src "+hash(script)+"; style-src "+hash(style)+
				"; img-src data:; form-action 'none'; base-uri 'none'", html.UnescapeString(policies.FindStringSubmatch(page)[1]))
			if strings.Contains(page, "<!--") || strings.Contains(page, "\u2028") || strings.Count(page, "</script") != 2 ||
				regexp.MustCompile(`(?m)^(import|export) `).MatchString(script) || regexp.MustCompile(`url\(|@import`).MatchString(style) {
				t.Errorf("%s: an element can be left, or loads a file", file)
			}
			for _, m := range targets.FindAllStringSubmatch(strings.Replace(page, script, "", 1), -1) {
				if target := m[1]; pages[target] == "" && !strings.HasPrefix(target, "data:") && target != "#main" {
					t.Errorf("%s links to %s", file, target)
				}
			}
			compare.Contains(t, page, "export of main at ccccccc, state 5555555, as of 2026-03-01 12:00:00 UTC")
			for _, id := range []string{"act", "signin"} {
				if strings.Contains(page, `id="`+id+`"`) {
					t.Errorf("%s has the dialog %s", file, id)
				}
			}
			if !strings.Contains(data, `\u003c`) && file != "app-wiki.html" {
				t.Errorf("%s lacks the text from Git", file)
			}
		}
	}
}

// TestExportShowsNoMore checks that an export has the answers for visitors without a sign-in, and only these.
func TestExportShowsNoMore(t *testing.T) {
	pages := exportOf(t, true)
	answersOf := func(file string) (all map[string]json.RawMessage) {
		t.Helper()
		_, data, _ := inlined(t, pages[file])
		var found struct {
			At      time.Time
			Answers map[string]json.RawMessage
		}
		must(t, json.Unmarshal([]byte(data), &found))
		compare.Check(t, exportTime, found.At)
		return found.Answers
	}
	shop := answersOf("app-shop.html")
	compare.Check(t, []string{"/api/v1/apps/shop/history", "/api/v1/events?app=shop"}, slices.Sorted(maps.Keys(shop)))
	var detail dashboard.Detail
	must(t, json.Unmarshal(shop["/api/v1/events?app=shop"], &detail))
	compare.Check(t, []any{breakout, ""}, []any{detail.Waiting, detail.Metrics[0].Query})
	var past dashboard.History
	must(t, json.Unmarshal(shop["/api/v1/apps/shop/history"], &past))
	compare.Check(t, breakout, past.Releases[0].Subject)
	var list dashboard.Fleet
	must(t, json.Unmarshal(answersOf("apps.html")["/api/v1/events?"], &list))
	compare.Check(t, []any{2, breakout}, []any{len(list.Apps), list.Note})
	var staged status.Fleet
	must(t, json.Unmarshal(answersOf("index.html")["/api/v1/fleet"], &staged))
	compare.Check(t, []any{2, []string{"dev", "prod"}}, []any{len(staged.Apps), staged.Stages})
}

func TestExportFails(t *testing.T) {
	broken := errors.New("broken")
	for isStaged, records := range map[bool]fakeRecords{false: {err: broken}, true: {}} {
		board := dashboard.NewBoard("prod", "")
		board.Staged.Store(isStaged)
		show(t, board, []status.App{appOf("shop", rollout.Healthy, 0)})
		server, err := dashboard.New(dashboard.Options{Board: board, Records: records, Fleet: answers(status.Fleet{}, broken), Now: time.Now})
		must(t, err)
		if pages, err := server.Export(t.Context(), "", exportTime); !errors.Is(err, broken) || pages != nil {
			t.Errorf("staged %t: %d pages, %v", isStaged, len(pages), err)
		}
	}
}
