package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// sessions seals cookies with a key of this process, so a restart signs out all users.
type sessions struct {
	key    []byte
	now    func() time.Time
	secure bool

	mu    sync.Mutex
	ended map[string]time.Time // expiry of ended sessions, by CSRF token
}

const sessionTime = 8 * time.Hour

const sessionCookie = "gitrollout_session"

type session struct {
	Person
	CSRF    string    `json:"csrf"`
	Expires time.Time `json:"expires"`
}

func newSessions(now func() time.Time, secure bool) *sessions {
	key := []byte(rand.Text() + rand.Text()) // 260 random bits
	return &sessions{key: key, now: now, secure: secure, ended: map[string]time.Time{}}
}

func (s *sessions) seal(purpose string, data any) (string, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(raw)
	return body + "." + base64.RawURLEncoding.EncodeToString(s.mac(purpose, body)), nil
}

func (s *sessions) mac(purpose, body string) []byte {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte(purpose + "\x00" + body))
	return m.Sum(nil)
}

var errNotOurs = errors.New("was not issued by this process, or was changed")

func (s *sessions) open(purpose, sealed string, data any) error {
	body, mac, _ := strings.Cut(sealed, ".")
	sum, errSum := base64.RawURLEncoding.DecodeString(mac)
	raw, errRaw := base64.RawURLEncoding.DecodeString(body)
	if errSum != nil || errRaw != nil || !hmac.Equal(sum, s.mac(purpose, body)) {
		return errNotOurs
	}
	return json.Unmarshal(raw, data)
}

func (s *sessions) of(r *http.Request) *session {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil
	}
	var found session
	if err := s.open("session", cookie.Value, &found); err != nil || !s.now().Before(found.Expires) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, isOver := s.ended[found.CSRF]; isOver {
		return nil
	}
	return &found
}

func (s *sessions) end(of *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.ended, func(_ string, expires time.Time) bool { return !s.now().Before(expires) })
	s.ended[of.CSRF] = of.Expires
}

func (s *sessions) begin(w http.ResponseWriter, p Person) (*session, error) {
	begun := &session{Person: p, CSRF: rand.Text(), Expires: s.now().Add(sessionTime).UTC()}
	sealed, err := s.seal("session", begun)
	if err != nil {
		return nil, err
	}
	http.SetCookie(w, s.cookie(sessionCookie, sealed, sessionTime, http.SameSiteStrictMode))
	return begun, nil
}

func (s *sessions) cookie(name, value string, age time.Duration, site http.SameSite) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true,
		Secure: s.secure, SameSite: site}
}

// signedIn returns the user of a session cookie or bearer token. A bearer token has no session, and needs no CSRF
// check, because other sites cannot make browsers send the token.
func (s *Server) signedIn(r *http.Request, rules *rules) (p Person, of *session, ok bool) {
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		p, ok = rules.byToken(token)
		return p, nil, ok
	}
	if of = s.sessions.of(r); of == nil {
		return Person{}, nil, false
	}
	return of.Person, of, true
}

type self struct {
	Actions bool           `json:"actions"`
	OIDC    bool           `json:"oidc"`
	Name    string         `json:"name,omitempty"` // "" if not signed in
	Email   string         `json:"email,omitempty"`
	CSRF    string         `json:"csrf,omitempty"`
	May     []rollout.Verb `json:"may"` // for the app in ?app=
}

func (s *Server) rules(w http.ResponseWriter) *rules {
	found, err := s.Access.read()
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
	}
	return found
}

func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	who := self{Actions: s.acts(), OIDC: s.OIDC != nil, May: []rollout.Verb{}}
	if !who.Actions {
		send(w, http.StatusOK, who)
		return
	}
	rules := s.rules(w)
	if rules == nil {
		return
	}
	if p, of, ok := s.signedIn(r, rules); ok {
		who.Name, who.Email, who.May = p.Name, p.Email, rules.may(p, r.FormValue("app"))
		if of != nil {
			who.CSRF = of.CSRF
		}
	}
	send(w, http.StatusOK, who)
}

const maxBody = 16 << 10

// receive decodes JSON and returns the rules. It requires JSON's content type, which other sites' forms cannot send.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, data any) *rules {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "send application/json")
		return nil
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(data); err != nil {
		fail(w, http.StatusBadRequest, "the request cannot be read: "+err.Error())
		return nil
	}
	return s.rules(w)
}

func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Token string `json:"token"`
	}
	rules := s.receive(w, r, &sent)
	if rules == nil {
		return
	}
	p, ok := rules.byToken(strings.TrimSpace(sent.Token))
	if !ok {
		fail(w, http.StatusForbidden, "the token is unknown")
		return
	}
	begun, err := s.sessions.begin(w, p)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	send(w, http.StatusOK, self{Actions: true, OIDC: s.OIDC != nil, Name: p.Name, Email: p.Email, CSRF: begun.CSRF,
		May: []rollout.Verb{}})
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if of := s.sessions.of(r); of != nil {
		s.sessions.end(of)
	}
	http.SetCookie(w, s.sessions.cookie(sessionCookie, "", -time.Second, http.SameSiteStrictMode))
	send(w, http.StatusOK, map[string]string{})
}

// same compares secrets in constant time. Empty secrets differ.
func same(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
