package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"gitrollout.dev/gitrollout/call"
)

// GitHubApp gets tokens for an installation of a GitHub App. It is safe for concurrent use.
type GitHubApp struct {
	API          string // default https://api.github.com; GitHub Enterprise Server: https://<host>/api/v3
	ID           string // app id or client id
	Installation string
	KeyFile      string // the app's private key (PEM), read for each new token
	Clients      *Clients
	Now          func() time.Time

	mu      sync.Mutex
	token   string
	expires time.Time
}

// Check sets the default API, and checks the fields and the key.
func (a *GitHubApp) Check() error {
	a.API = cmp.Or(a.API, "https://api.github.com")
	u, err := url.Parse(a.API)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return fmt.Errorf("GitHub App: the API %q is not a URL such as https://api.github.com", RedactURL(a.API))
	case u.Scheme != "https" && !(Remote{host: u.Host}).loopback():
		return fmt.Errorf("GitHub App: the API %s must be https", RedactURL(a.API))
	case a.Installation == "" || strings.Trim(a.Installation, "0123456789") != "":
		return fmt.Errorf("GitHub App: the installation id %q is not a number; "+
			"it is at the end of the URL of the installation's page", a.Installation)
	case a.ID == "" || strings.ContainsAny(a.ID, " \n\t"):
		return errors.New("GitHub App: the app's id is missing; it is on the app's page")
	}
	_, err = a.key()
	return err
}

// Refresh implements Auth.Refresh. The password is usually valid for at least five minutes.
func (a *GitHubApp) Refresh(ctx context.Context) (username, password string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == "" || !a.Now().Add(5*time.Minute).Before(a.expires) { // a Git operation must end before expiry
		if a.token, a.expires, err = a.ask(ctx); err != nil {
			return "", "", err
		}
	}
	return "x-access-token", a.token, nil
}

// Forget drops a token that the Git server has refused.
func (a *GitHubApp) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = ""
}

func (a *GitHubApp) ask(ctx context.Context) (token string, expires time.Time, err error) {
	jwt, err := a.jwt()
	if err != nil {
		return "", expires, err
	}
	client, err := a.Clients.Client()
	if err != nil {
		return "", expires, err
	}
	caller := call.Caller{
		Client: func(bool) *http.Client { return client }, Secrets: &call.Secrets{}, Name: "GitHub",
	}
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	_, err = caller.JSON(ctx, call.Request{
		Method: http.MethodPost, Base: a.API, Path: "/app/installations/" + a.Installation + "/access_tokens",
		Header: http.Header{
			"Authorization": {"Bearer " + jwt}, "Accept": {"application/vnd.github+json"},
			"X-Github-Api-Version": {"2022-11-28"},
		},
	}, nil, &answer)
	var failed *call.Error
	switch {
	case errors.As(err, &failed) && (failed.Passes || failed.Status == 0):
		return "", expires, fmt.Errorf("GitHub App: %w: %w", ErrUnreachable, err)
	case err != nil:
		return "", expires, fmt.Errorf("GitHub App %s, installation %s: %w", a.ID, a.Installation, err)
	case answer.Token == "" || answer.Expires.IsZero():
		return "", expires, fmt.Errorf("GitHub App: %s did not answer with a token", RedactURL(a.API))
	}
	return answer.Token, answer.Expires, nil
}

// jwt returns a token that is valid for nine minutes. Its start is a minute in the past, because clocks differ.
func (a *GitHubApp) jwt() (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	now := a.Now()
	claims, _ := json.Marshal(map[string]any{
		"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix(), "iss": a.ID,
	})
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("GitHub App: sign: %w", err)
	}
	return text + "." + encode(signature), nil
}

func (a *GitHubApp) key() (*rsa.PrivateKey, error) {
	data, err := os.ReadFile(a.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("GitHub App: key: %w", err)
	}
	if parsed, err := ssh.ParseRawPrivateKey(bytes.TrimSpace(data)); err == nil {
		if key, ok := parsed.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf(
		"GitHub App: %s is not an RSA private key; use the .pem file that GitHub made for the app", a.KeyFile)
}
