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

// maxRecords limits an answer: 500 apps in 4 clusters have about 100 KB, compressed.
const maxRecords = 2000

// showFleet responds with the most urgent apps of all clusters. A page with the newest answer gets no content.
func (s *Server) showFleet(w http.ResponseWriter, r *http.Request) {
	if !s.Board.Staged.Load() {
		fail(w, http.StatusNotFound, rollout.FleetPath+" does not exist, so there are no stages")
		return
	}
	f, tag, err := s.Records.Fleet(r.Context())
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
	_ = json.NewEncoder(body).Encode(urgent(f, r.FormValue("q"))) // fails only if the connection is closed
}

// urgent returns the apps with all words of q: first apps that need a user's action, then other apps that move or wait.
func urgent(f status.Fleet, q string) status.Fleet {
	ranks, sizes := map[string]int{}, map[string]int{}
	f.Apps = slices.DeleteFunc(slices.Clone(f.Apps), func(a status.FleetApp) bool {
		text := ""
		for stage, all := range a.Stages {
			for _, c := range all {
				row := rowOf(c)
				text += stage + " " + c.Cluster + " " + row.searched() + " "
				switch {
				case row.Needs:
					ranks[a.App] = 2
				case row.Text != "":
					ranks[a.App] = max(ranks[a.App], 1)
				}
			}
			sizes[a.App] += len(all)
		}
		return lacks(text, q)
	})
	slices.SortStableFunc(f.Apps, func(a, b status.FleetApp) int { return ranks[b.App] - ranks[a.App] })
	records := 0
	for i, a := range f.Apps {
		if records += sizes[a.App]; records > maxRecords && i > 0 {
			f.Notes = append(slices.Clip(f.Notes), fmt.Sprintf("only the %d most urgent apps of %d are listed: search for others",
				i, len(f.Apps)))
			f.Apps = f.Apps[:i]
			break
		}
	}
	return f
}
