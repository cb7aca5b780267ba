package forge

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"gitrollout.dev/gitrollout/call"
)

// answering is a fake forge's transport: the function returns the response to each request.
type answering func(*http.Request) *http.Response

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// FuzzAPIAnswers checks that no response makes a forge's client panic. The number of requests and the wait after a
// response must be limited. Requests may go only to the API's host. An error must be a short line without the token.
func FuzzAPIAnswers(f *testing.F) {
	pull := `{"number":7,"iid":7,"index":7,"id":7,"title":"t","body":"b","description":"d","state":"open","merged":true,` +
		`"head":{"ref":"gitrollout/promote/prod/shop","sha":"abc","repo":{"id":1}},"base":{"repo":{"id":1}},"labels":[{"name":"x"}],` +
		`"source_branch":"x","source_project_id":1,"target_project_id":1,"sha":"abc","name":"x","username":"ann"}`
	for _, body := range []string{
		pull, "[" + pull + "]", "[" + strings.Repeat(pull+",", perPage-1) + pull + "]", "[null]", "[]", "{}", "null", "", "<html>", `"t0ken"`,
		`{"statuses":[{"context":"c","state":"success","status":"pending","description":"d"}],"state":"pending","total_count":-1}`,
		`{"message":"t0ken\n\u001b[31mis wrong","errors":[{"message":"rate limit"}]}`, `[{"number":1e99}]`, `[{"id":-9223372036854775808}]`,
		`{"protected":true,"protection":null}`, strings.Repeat("[", 10_000),
	} {
		f.Add([]byte(body), uint8(0), "", "")
		f.Add([]byte(body), uint8(7), "99999999999", "0")
	}
	f.Add([]byte("{}"), uint8(9), "Fri, 31 Dec 9999 23:59:59 GMT", "9223372036854775807")
	f.Add([]byte("essage\":\"t0ke\xff\xc6n"), uint8(0x8e), "", "")
	statuses := []int{200, 201, 202, 204, 301, 304, 307, 401, 403, 404, 409, 422, 429, 500, 503}
	f.Fuzz(func(t *testing.T, body []byte, which uint8, retry, reset string) {
		now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		for _, k := range forges {
			requests := 0
			client := &http.Client{Transport: answering(func(r *http.Request) *http.Response {
				if requests++; r.URL.Host != "git.example" {
					t.Fatalf("%s: a request to %s", k.name, r.URL.Host)
				}
				h := http.Header{"Location": {"https://evil.example/" + reset}}
				for name, value := range map[string]string{"Retry-After": retry, "X-Ratelimit-Reset": reset, "X-Ratelimit-Remaining": reset} {
					if value != "" {
						h.Set(name, value)
					}
				}
				if reset != "" {
					h.Set("Ratelimit-Reset", reset)
					h.Set("Ratelimit-Remaining", "0")
				}
				return &http.Response{
					StatusCode: statuses[int(which)%len(statuses)], Header: h, Request: r, Body: io.NopCloser(bytes.NewReader(body)),
				}
			})}
			a := &api{
				client: func(bool) *http.Client { return client }, base: "https://git.example/api", header: k.header,
				token: tokenOf("t0ken"), now: func() time.Time { return now },
			}
			told := func(err error) {
				if requests > 3*maxPages {
					t.Fatalf("%s: %d requests for one thing", k.name, requests)
				}
				if at := a.until.Sub(now); at > time.Hour {
					t.Fatalf("%s: a break of %s", k.name, at)
				}
				a.until, requests = time.Time{}, 0
				if err == nil {
					return
				}
				text := err.Error()
				if strings.Contains(text, "t0ken") || strings.ContainsFunc(text, unicode.IsControl) ||
					utf8.RuneCountInString(text) > call.MaxMessage+300 {
					t.Fatalf("%s tells %q", k.name, text)
				}
			}
			ctx, h := t.Context(), k.client(a, "acme/deploy", "main")
			p, _, err := h.find(ctx, promoteBranch)
			told(err)
			_, err = h.open(ctx)
			told(err)
			_, err = h.create(ctx, promoteBranch, text{"a title", "a body"})
			told(err)
			told(h.edit(ctx, p, text{"a title", "a body"}, true))
			told(h.ask(ctx, p, []string{"ann", "bob"}))
			told(h.label(ctx, p, []string{"release", "prod"}))
			all, err := h.statuses(ctx, "abc")
			told(err)
			told(h.setStatus(ctx, "abc", "gitrollout/prod/shop", all["c"]))
			_, err = h.isProtected(ctx, "main")
			told(err)
			_, err = h.asksOwners(ctx, "main")
			told(err)
			_, err = pages[comment](ctx, a, k.comments("acme/deploy", p.number).list, "")
			told(err)
		}
	})
}
