package dashboard

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestASealIsForOnePurpose checks that a value is refused if it was sealed for another purpose. For example, every visitor can get the
// cookie of a sign-in in progress, which must not be accepted as a session.
func TestASealIsForOnePurpose(t *testing.T) {
	now := time.Now()
	s := newSessions(func() time.Time { return now }, false)
	whole := session{Person: Person{Name: "Ann", Email: "ann@example.com"}, CSRF: "x", Expires: now.Add(time.Hour)}
	for purpose, counts := range map[string]bool{"session": true, "flow": false, "": false, "sessio": false} {
		sealed, err := s.seal(purpose, whole)
		must(t, err)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: sealed})
		compare.CheckNamed(t, "a session, sealed for "+purpose, counts, s.of(r) != nil)
		var f flow
		compare.CheckNamed(t, "a sign-in, sealed for "+purpose, purpose == "flow", s.open("flow", sealed, &f) == nil)
	}
	compare.CheckNamed(t, "the same secret", [3]bool{false, false, true}, [3]bool{same("", ""), same("", "x"), same("x", "x")})
}

// FuzzOpen checks that sessions.open refuses each text that this process has not sealed.
func FuzzOpen(f *testing.F) {
	s := newSessions(time.Now, false)
	sealed, err := s.seal("session", session{Person: Person{Name: "Ann"}, Expires: time.Now().Add(time.Hour)})
	must(f, err)
	foreign, _ := newSessions(time.Now, false).seal("session", session{Person: Person{Name: "Eve"}})
	for _, seed := range []string{
		sealed, foreign, "", ".", "e30.", "e30.AAAA", sealed + "A", strings.ToLower(sealed), "." + sealed, sealed + ".",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got session
		err := s.open("session", text, &got)
		if err == nil && got.Name != "Ann" || err != nil && !errors.Is(err, errNotOurs) {
			t.Errorf("%q counts: %+v, %v", text, got, err)
		}
	})
}

// TestRightsAreWhatARuleGives checks with random rules that a user has only verbs that a rule grants. After a sign-in with a token, only
// rules with this token apply. A group's rule grants verbs only to users with the group's claim.
func TestRightsAreWhatARuleGives(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	some := func() right {
		verbs := []rollout.Verb{rollout.Promote, rollout.Hold, rollout.Abort, rollout.Retry}
		return right{Apps: []string{pick("shop", "pay", "*", "sh*")}, Verbs: verbs[:random.IntN(len(verbs)+1)]}
	}
	for range 5000 {
		r := &rules{}
		for range random.IntN(4) {
			r.People = append(r.People, personRule{
				Name: "x", Email: pick("ann@example.com", "Ann@example.com", "bob@example.com"), Token: pick("", "one", "two"), right: some(),
			})
			r.Groups = append(r.Groups, groupRule{Claim: "groups", Value: pick("dev", "ops"), right: some()})
		}
		p := Person{Email: pick("ann@example.com", "bob@example.com"), Token: pick("", "one", "two", "gone")}
		p.Claims = []string{"groups=" + pick("dev", "ops")}
		for _, verb := range r.may(p, "shop") {
			byRule := slices.ContainsFunc(r.People, func(rule personRule) bool {
				return strings.EqualFold(rule.Email, p.Email) && slices.Contains(rule.on("shop"), verb) &&
					(p.Token == "" || rule.Token == p.Token)
			})
			byGroup := p.Token == "" && slices.ContainsFunc(r.Groups, func(rule groupRule) bool {
				return p.Claims[0] == "groups="+rule.Value && slices.Contains(rule.on("shop"), verb)
			})
			if !byRule && !byGroup {
				t.Fatalf("%+v may %s by no rule of %+v", p, verb, r)
			}
		}
	}
}

// FuzzAccessFile checks that Access.read refuses a person who cannot be a commit's author, and a token that is no digest. No person may
// have the empty token.
func FuzzAccessFile(f *testing.F) {
	_, digest := NewToken()
	f.Add("apiVersion: gitrollout.dev/v1alpha1\nkind: DashboardAccess\npeople: [{name: a, email: b@c, token: '" + digest +
		"', apps: ['*'], verbs: [promote]}]\n")
	f.Add("apiVersion: gitrollout.dev/v1alpha1\nkind: DashboardAccess\npeople: [{name: a, email: b, apps: ['*'], verbs: [undo]}]\n")
	f.Add("kind: DashboardAccess")
	f.Add("people: {}")
	f.Fuzz(func(t *testing.T, text string) {
		a := &Access{File: filepath.Join(t.TempDir(), "a.yaml")}
		must(t, os.WriteFile(a.File, []byte(text), 0o600))
		r, err := a.read()
		if err != nil {
			return
		}
		for _, p := range r.People {
			if !isAuthor(p.Name, p.Email) || p.Token != "" && len(p.Token) != len(digest) {
				t.Errorf("%+v may act", p)
			}
		}
		_, known := r.byToken("")
		compare.CheckNamed(t, "the empty token belongs to a person", false, known)
	})
}

// TestSamplesAreOfChanges checks that a sample is added only if one of its numbers differs from the last sample.
func TestSamplesAreOfChanges(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	list := appended(nil, Sample{At: noon})
	for i, next := range []Sample{{Weight: 1}, {Real: 1}, {New: 1}, {Old: 1}, {Want: 1}} {
		next.At = noon.Add(time.Duration(i) * time.Second)
		if list = appended(list, next); len(list) != i+2 {
			t.Fatalf("%d samples, and %+v is one more", len(list), next)
		}
		next.At = next.At.Add(time.Millisecond)
		if list = appended(list, next); len(list) != i+2 {
			t.Fatalf("%+v is added twice", next)
		}
	}
}
