package forge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestForksOfGitLab checks that merge requests from forks are ignored, even if the fork's branch has a proposal's name.
func TestForksOfGitLab(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("source_branch") == "theirs" {
			fmt.Fprint(w, `[{"iid":3,"source_branch":"theirs","source_project_id":8,"target_project_id":7,"state":"opened"}]`)
			return
		}
		fmt.Fprint(w, `[{"iid":1,"source_branch":"b","source_project_id":7,"target_project_id":7,"state":"opened"},`+
			`{"iid":2,"source_branch":"b","source_project_id":8,"target_project_id":7,"state":"opened"}]`)
	}))
	defer server.Close()
	g := gitLab.client(newAPI(server.URL, time.Now), "group/project", "main")
	all, err := g.open(t.Context())
	if err != nil || len(all) != 1 || all[0].number != 1 {
		t.Errorf("open are %+v, %v", all, err)
	}
	if p, found, err := g.find(t.Context(), "b"); err != nil || !found || p.number != 1 {
		t.Errorf("the branch's is %+v, %t, %v", p, found, err)
	}
	if p, found, err := g.find(t.Context(), "theirs"); err != nil || found {
		t.Errorf("a branch that only a fork has is %+v, %t, %v", p, found, err)
	}
}
