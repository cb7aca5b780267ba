package dashboard

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// maxRecords limits a compressed answer to 180 KB. It allows 500 apps in 4 clusters.
const maxRecords = 2000

// showFleet responds with the most urgent apps of all clusters. If the page has the newest answer, the response has no
// content.
func (s *Server) showFleet(w http.ResponseWriter, r *http.Request) {
	if !s.Board.Staged.Load() {
		fail(w, http.StatusNotFound, rollout.FleetPath+" does not exist, so there are no stages")
		return
	}
	f, tag, err := s.Fleet(r.Context())
	if err != nil {
		sendRead(w, nil, err)
		return
	}
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var body io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		body = z
	}
	_ = json.NewEncoder(body).Encode(urgent(f, r.FormValue("q"), maxRecords))
}

// urgent returns the apps whose texts contain all words of q. Apps that need a user come first, then apps that move or
// wait.
func urgent(f status.Fleet, q string, most int) status.Fleet {
	ranks, sizes, records := map[string]int{}, map[string]int{}, 0
	f.Apps = slices.DeleteFunc(slices.Clone(f.Apps), func(a status.FleetApp) bool {
		text := ""
		for stage, all := range a.Stages {
			for _, c := range all {
				row := rowOf(c)
				text += stage + " " + c.Cluster + " " + row.searched() + " "
				if row.Needs {
					ranks[a.App] = 2
				} else if row.Text != "" {
					ranks[a.App] = max(ranks[a.App], 1)
				}
			}
			sizes[a.App] += len(all)
		}
		return lacks(text, q)
	})
	slices.SortStableFunc(f.Apps, func(a, b status.FleetApp) int { return ranks[b.App] - ranks[a.App] })
	n := slices.IndexFunc(f.Apps, func(a status.FleetApp) bool {
		records += sizes[a.App]
		return records > most
	})
	if n > 0 {
		more := fmt.Sprintf("only the %d most urgent apps of %d are listed: search for others", n, len(f.Apps))
		f.Notes, f.Apps = append(slices.Clip(f.Notes), more), f.Apps[:n]
	}
	return f
}
