package dashboard_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// stagedOf returns a fleet of apps in two clusters. In dev, all apps are Healthy. In prod, the given function edits each app.
func stagedOf(names string, change func(a *status.App)) status.Fleet {
	f := status.Fleet{Stages: []string{"dev", "prod"}, Notes: []string{"cluster lab: state branch lab: does not exist"}}
	for _, name := range strings.Fields(names) {
		in := func(cluster string) status.App {
			return status.App{App: name, Cluster: cluster, Phase: rollout.Healthy, Stable: &status.Release{
				Images: []string{"registry.example.com/" + name + ":v3"}, Commit: strings.Repeat("3", 40), Author: "Ann <ann@example.com>"}}
		}
		prod := in("prod-eu")
		change(&prod)
		f.Apps = append(f.Apps, status.FleetApp{App: name, Stages: map[string][]status.App{"dev": {in("dev")}, "prod": {prod}}})
	}
	return f
}

// answers returns a source of the fleet with a fixed tag.
func answers(f status.Fleet, err error) func(context.Context) (status.Fleet, string, error) {
	return func(context.Context) (status.Fleet, string, error) { return f, `"1"`, err }
}

// ask requests the fleet with the given headers. It returns the response, and the body without decompression.
func ask(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	return res, string(body)
}

// TestFleetOfStages checks the first page and the fleet's answer, with and without fleet.yaml. The answer lists apps by urgency. Other
// cases are a search, an ETag of the newest answer, and an unreachable Git server.
func TestFleetOfStages(t *testing.T) {
	fleet := stagedOf("calm mail pay shop wiki", func(a *status.App) {
		switch a.App {
		case "mail":
			a.Phase, a.Reason = status.Unknown, "no readable record: see the note"
		case "pay":
			a.Held = &rollout.Held{Reason: rollout.HeldStage, Message: "release h1-1 of c3c3c3c by Ann waits for stage dev"}
		case "shop":
			a.Phase, a.Reason = rollout.Degraded, "error-rate is Failed"
		}
	})
	server, board := serve(t, dashboard.Options{Fleet: answers(fleet, nil)})
	url := server.URL + "/api/v1/fleet"
	res, body := ask(t, url)
	compare.CheckNamed(t, "without fleet.yaml", []any{404, true}, []any{res.StatusCode, strings.Contains(body, "does not exist")})
	page := func(path string) string { _, body := get(t, server.URL+path); return body }
	compare.CheckNamed(t, "the first page without stages", page("/apps"), page("/"))

	board.Staged.Store(true)
	compare.Contains(t, page("/"), "/assets/stages.js", `<a href="/apps">Apps of prod</a>`)
	compare.Contains(t, page("/apps"), "/assets/fleet.js", `<a href="/">All stages</a>`)
	apps := func(query string) (names string) {
		t.Helper()
		_, body := ask(t, url+query)
		var f status.Fleet
		must(t, json.Unmarshal([]byte(body), &f))
		compare.Check(t, fleet.Notes, f.Notes)
		for _, a := range f.Apps {
			i := slices.IndexFunc(fleet.Apps, func(b status.FleetApp) bool { return a.App == b.App })
			compare.Check(t, fleet.Apps[i], a)
			names += a.App + " "
		}
		return names
	}
	for query, want := range map[string]string{"": "shop mail pay calm wiki ", "?q=WAITS+stage": "pay ", "?q=prod-eu+degraded": "shop ",
		"?q=wiki:v3": "wiki ", "?q=nothing": ""} {
		compare.CheckNamed(t, query, want, apps(query))
	}
	res, _ = ask(t, url)
	res, body = ask(t, url, "If-None-Match", res.Header.Get("ETag"))
	compare.CheckNamed(t, "the newest answer", []any{304, ""}, []any{res.StatusCode, body})

	server, board = serve(t, dashboard.Options{Fleet: answers(status.Fleet{}, errors.New("git: unreachable"))})
	board.Staged.Store(true)
	res, body = ask(t, server.URL+"/api/v1/fleet")
	compare.CheckNamed(t, "without Git", []any{502, `{"error":"git: unreachable"}` + "\n"}, []any{res.StatusCode, body})
}

// TestLargeFleet checks that the answer for 500 apps in four stages has at most 300 KB, and that a larger fleet's answer has only the most
// urgent apps.
func TestLargeFleet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("fix faster checkout retry queue the a cache bump version of wallet search index for and update client timeouts")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	release := func(name string) *status.Release {
		subject := ""
		for range 3 + random.IntN(5) {
			subject += words[random.IntN(len(words))] + " "
		}
		commit := fmt.Sprintf("%016x%016x%08x", random.Uint64(), random.Uint64(), random.Uint32())
		image := fmt.Sprintf("registry.example.com/team-%s:1.%d.%d-%s", name, random.IntN(99), random.IntN(9), commit[:8])
		return &status.Release{Images: []string{image}, Commit: commit, Subject: subject,
			Hash:   rollout.Hash(fmt.Sprintf("h1-%010x", random.Uint64()>>24)),
			Author: fmt.Sprintf("Person %d <person-%[1]d@example.com>", random.IntN(60)),
			Since:  now.Add(-time.Duration(random.IntN(1e6)) * time.Second)}
	}
	fleet := status.Fleet{Stages: []string{"dev", "staging", "prod", "edge"}}
	for i := range 600 {
		name := fmt.Sprintf("service-%04d", i)
		app := status.FleetApp{App: name, Stages: map[string][]status.App{}}
		for _, stage := range fleet.Stages {
			a := status.App{App: name, Cluster: stage + "-1", Path: "apps/" + name + "/overlays/" + stage, Phase: rollout.Healthy,
				Stable: release(name)}
			a.Source = &rollout.Commit{ID: a.Stable.Commit}
			switch random.IntN(10) {
			case 0:
				a.Phase, a.Reason, a.Release = rollout.Progressing, "3 of 10 pods of the new version are ready, and the step waits for 5", release(name)
			case 1:
				a.Held = &rollout.Held{Reason: rollout.HeldStage, Commit: release(name).Commit,
					Message: "release " + string(a.Stable.Hash) + " of " + a.Stable.Commit[:7] + " by Ann waits for stage dev"}
			}
			app.Stages[stage] = []status.App{a}
		}
		fleet.Apps = append(fleet.Apps, app)
	}
	fleet.Apps[599].Stages["edge"][0].Phase = rollout.Degraded
	server, board := serve(t, dashboard.Options{Fleet: answers(fleet, nil)})
	board.Staged.Store(true)
	res, body := ask(t, server.URL+"/api/v1/fleet", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(strings.NewReader(body))
	must(t, err)
	plain, err := io.ReadAll(z)
	must(t, err)
	t.Logf("%d bytes, %d without compression", len(body), len(plain))
	if len(body) > 300_000 || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes, encoded as %q", len(body), res.Header.Get("Content-Encoding"))
	}
	var f status.Fleet
	must(t, json.Unmarshal(plain, &f))
	compare.Check(t, []any{500, "service-0599", []string{"only the 500 most urgent apps of 600 are listed: search for others"}},
		[]any{len(f.Apps), f.Apps[0].App, f.Notes})
	_, body = ask(t, server.URL+"/api/v1/fleet?q=service-0598")
	compare.Contains(t, body, `"app":"service-0598"`)
}
