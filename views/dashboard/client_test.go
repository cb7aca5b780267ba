package dashboard_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// TestClientOfAPageThatFails checks that Refresh returns an error if the server is no reconciler, or if the reconciler
// fails. After that, Listing still returns the data of the last successful Refresh.
func TestClientOfAPageThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		args   []string
		want   string // "" for no error
	}{
		"apps":         {200, `{"apps":[{"app":"shop","cluster":"prod"}]}`, nil, ""},
		"one app":      {200, `{"app":"shop","cluster":"prod"}`, []string{"shop"}, ""},
		"no such app":  {404, `{}`, []string{"shop"}, `has no app "shop"`},
		"no such page": {404, `{"apps":[]}`, nil, "404"},
		"an error":     {500, `{"error":"out of memory","apps":[]}`, nil, "out of memory"},
		"a refusal":    {403, `{"apps":[]}`, nil, "403"},
		"a login page": {200, `<html>`, nil, "invalid character"},
		"cut off":      {200, `{"apps":[`, nil, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			client, err := dashboard.NewClient(server.URL, c.args)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Refresh(t.Context())
			if c.want != "" {
				compare.Contains(t, fmt.Sprint(err), c.want)
				compare.CheckNamed(t, "no such app", name == "no such app", errors.Is(err, dashboard.ErrNoSuchApp))
				return
			}
			if err != nil || len(client.Listing().Apps) != 1 || client.Listing().Apps[0].App != "shop" {
				t.Errorf("%+v, %v", client.Listing(), err)
			}
			server.Close()
			if isNew, err := client.Refresh(t.Context()); isNew || err == nil || len(client.Listing().Apps) != 1 {
				t.Errorf("the page is gone: new %t, %v; it showed %+v", isNew, err, client.Listing())
			}
			if len(c.args) == 1 && client.Listing().Cluster != "prod" {
				t.Errorf("cluster %q", client.Listing().Cluster)
			}
		})
	}
	for _, address := range []string{"", "127.0.0.1:3100", "ftp://host", "http://"} {
		_, err := dashboard.NewClient(address, nil)
		compare.Contains(t, fmt.Sprint(err), "is not an address")
	}
}
