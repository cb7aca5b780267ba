package vendoring_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/author/vendoring"
)

// TestServers checks that a server that hangs causes an error, and that a slow server causes no error. The error for
// a refused redirect names the redirect's target.
func TestServers(t *testing.T) {
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/hangs", "/hangs-in-the-middle":
			if req.URL.Path != "/hangs" {
				_, _ = to.Write([]byte("half"))
				_ = http.NewResponseController(to).Flush()
			}
			select {
			case <-hung:
			case <-req.Context().Done():
			}
		case "/slow":
			for range 8 {
				_, _ = to.Write([]byte("x"))
				_ = http.NewResponseController(to).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		case "/file":
			to.Header().Set("Location", "file:///etc/passwd")
			to.WriteHeader(http.StatusFound)
		case "/metadata":
			http.Redirect(to, req, "http://169.254.169.254/latest", http.StatusFound)
		}
	}))
	defer server.Close()
	defer close(hung)
	g := &vendoring.Getter{Silence: 500 * time.Millisecond}
	for path, want := range map[string]string{
		"/hangs": "the response has stopped", "/hangs-in-the-middle": "the response has stopped", "/slow": "",
		"/file": "it redirects to file://", "/metadata": "it redirects to http://169.254.169.254, which gets no request",
	} {
		a, err := g.Get(t.Context(), server.URL+path, "", "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || want == "" && len(a.Body()) != 8 {
			t.Errorf("%s: %q, error %v, want %q", path, a.Body(), err, want)
		}
	}
	w := newWorld(t)
	w.getter.Login = nil
	w.update("", "charts/index.yaml answers 403: log in with docker login or helm registry login")
}
