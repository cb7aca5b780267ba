package provider_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

var webContract = contract{
	kind: "web", doc: "https://argo-rollouts.readthedocs.io/en/stable/analysis/web/", anyText: true,
	config: "{url: 'ADDRESS/api/v1/measurement?service=checkout', jsonPath: '{$.data}', " +
		"headers: [{key: Authorization, value: Bearer " + token + "}]}",
	serve: documented("GET /api/v1/measurement", hasHeader("Authorization", "Bearer "+token), func(f *fake, r *http.Request, _ string) {
		f.wantEqual("query", r.URL.RawQuery, "service=checkout")
	}),
	answers: []canned{
		{name: "one", reply: `{"data":{"ok":true,"successPercent":0.95}}`, want: map[string]any{"ok": true, "successPercent": 0.95}},
		{name: "several", reply: `{"data":[1,2.5,"x",null]}`, want: []any{1.0, 2.5, "x", nil}},
		{name: "number", reply: `{"data":7}`, want: 7.0},
		{name: "empty", reply: `{"data":null}`, want: nil},
		{name: "a text", reply: "1.5\nOK", want: "1.5\nOK"},
		{name: "no field", reply: `{"date":1}`, err: "data is not found in the answer"},
		{name: "an echo", reply: `{"data":{"you said":["Bearer ` + token + `"]}}`, want: map[string]any{"you said": []any{"***"}}},
	},
}

var webPostContract = contract{
	kind: "web", name: "post", doc: "https://argo-rollouts.readthedocs.io/en/stable/analysis/web/#optional-web-methods",
	config: "{url: ADDRESS/measure, method: POST, jsonBody: {key1: value_1, key2: {'n': 5}}, authentication: {oauth2: {" +
		"tokenUrl: ADDRESS/token, clientId: gitrollout, clientSecret: " + token + ", scopes: [read, metrics]}}}",
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if r.URL.Path == "/token" {
			return serveToken(f, w, r, body, true)
		}
		if r.Header.Get("Authorization") != "Bearer s3cr3t-access" {
			return false
		}
		f.want(r, "POST /measure")
		f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/json")
		f.wantEqual("body", body, `{"key1":"value_1","key2":{"n":5}}`)
		if f.reply == "echo" {
			http.Error(w, r.Header.Get("Authorization"), http.StatusBadRequest)
			return true
		}
		f.send(w)
		return true
	},
	answers: []canned{
		{name: "one", reply: `0.5`, want: 0.5},
		{name: "empty", reply: ``, want: ""},
		{name: "tells the token", reply: "echo", err: "400 Bad Request: ***"},
	},
}

// serveToken is a token endpoint (RFC 6749, sections 2.3.1 and 4.4). If header is true, credentials must be in a header, else in the body.
func serveToken(f *fake, w http.ResponseWriter, r *http.Request, body string, header bool) bool {
	f.want(r, "POST /token")
	form := f.form(body)
	user, password, _ := r.BasicAuth()
	if !header {
		user, password = form.Get("client_id"), url.QueryEscape(form.Get("client_secret"))
	}
	if user != "gitrollout" || password != url.QueryEscape(token) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
		return true
	}
	f.wantEqual("grant_type", form.Get("grant_type"), "client_credentials")
	f.wantEqual("scope", form.Get("scope"), "read metrics")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "s3cr3t-access", "token_type": "bearer", "expires_in": 3600})
	return true
}

// TestTokenInTheBody checks a server that accepts the client's ID and secret only in the body.
func TestTokenInTheBody(t *testing.T) {
	c := webPostContract
	c.serve = func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if r.URL.Path == "/token" {
			return serveToken(f, w, r, body, false)
		}
		return webPostContract.serve(f, w, r, body)
	}
	newBench(t, c).wantValue(0.5)
}

// TestWebFollowsBareRedirects checks that requests without credentials follow redirects, without a header Referer.
func TestWebFollowsBareRedirects(t *testing.T) {
	var referer atomic.Value
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		referer.Store(r.Header.Get("Referer"))
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer target.Close()
	b := newBench(t, webContract)
	b.mode = target.URL
	delete(b.request.Config, "headers")
	b.request.Config["jsonPath"] = "{$.ok}"
	b.request.Config["url"] = b.address + "/x?key=" + url.QueryEscape(token)
	b.wantValue(true)
	compare.CheckNamed(t, "Referer", "", referer.Load())
}

// TestCredentials checks that a token is sent but never shown, and that scopes are requested only if configured.
func TestCredentials(t *testing.T) {
	for name, authentication := range map[string]string{
		"bearer": "{bearer: {token: " + token + "}}",
		"oauth2": "{oauth2: {tokenUrl: ADDRESS/token, clientId: gitrollout, clientSecret: x}}",
	} {
		t.Run(name, func(t *testing.T) {
			c := webContract
			c.config = "{url: ADDRESS/x, authentication: " + authentication + "}"
			c.serve = func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
				if r.URL.Path == "/token" {
					f.wantEqual("form", body, "grant_type=client_credentials")
					_, _ = io.WriteString(w, `{"access_token":"`+token+`"}`)
					return true
				}
				f.wantEqual("Authorization", r.Header.Get("Authorization"), "Bearer "+token)
				f.send(w)
				return true
			}
			b := newBench(t, c)
			b.reply = `{"ok":"` + token + `"}`
			b.wantValue(map[string]any{"ok": "***"})
		})
	}
	c := webPostContract
	c.serve = func(f *fake, w http.ResponseWriter, r *http.Request, _ string) bool {
		f.want(r, "POST /token")
		_, _ = io.WriteString(w, `{}`)
		return true
	}
	compare.Check(t, "access token: the answer has none", newBench(t, c).wantError(""))
}
