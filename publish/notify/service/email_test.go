package service_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/rollout"
)

// mailServer is a small SMTP server (RFC 5321) with STARTTLS and AUTH PLAIN.
type mailServer struct {
	t        *testing.T
	listener net.Listener
	tls      *tls.Config // nil: the server does not offer TLS
	implicit bool        // the connection begins with TLS
	refuse   string      // the response to each recipient; "" accepts all recipients
	users    map[string]string

	mails []string
	to    []string
	plain bool // a mail has arrived without TLS
}

func (s *mailServer) start() *mailServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(s.t, err)
	s.listener = l
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.talk(conn)
		}
	}()
	return s
}

func (s *mailServer) port() string {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	return port
}

// talk serves one connection from the greeting to QUIT.
func (s *mailServer) talk(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	secure, known := s.implicit, len(s.users) == 0
	if s.implicit {
		conn = tls.Server(conn, s.tls)
	}
	r := textproto.NewReader(bufio.NewReader(conn))
	say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\r\n", args...) }
	say("220 mail.test ready")
	for {
		line, err := r.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			say("250-mail.test")
			if s.tls != nil && !secure {
				say("250-STARTTLS")
			}
			if len(s.users) > 0 {
				say("250-AUTH PLAIN")
			}
			say("250 8BITMIME")
		case "STARTTLS":
			say("220 go on")
			conn = tls.Server(conn, s.tls)
			r = textproto.NewReader(bufio.NewReader(conn))
			secure = true
		case "AUTH":
			text, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			parts := strings.Split(string(text), "\x00")
			if known = len(parts) == 3 && s.users[parts[1]] == parts[2]; known {
				say("235 welcome")
			} else {
				say("535 5.7.8 no such user or password")
			}
		case "MAIL":
			if !known {
				say("530 5.7.0 authentication required")
				continue
			}
			say("250 ok")
		case "RCPT":
			if s.refuse != "" {
				say("%s", s.refuse)
				continue
			}
			s.to = append(s.to, rest)
			say("250 ok")
		case "DATA":
			say("354 go on")
			text, err := r.ReadDotBytes()
			if err != nil {
				return
			}
			s.mails, s.plain = append(s.mails, string(text)), s.plain || !secure
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// certificate returns a certificate for 127.0.0.1, and a pool that trusts this certificate.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestEmail(t *testing.T) {
	cert, pool := certificate(t)
	secure := &tls.Config{Certificates: []tls.Certificate{cert}}
	users := map[string]string{"user": "s3cr3t-password"}
	for _, c := range []struct {
		name    string
		server  mailServer
		tls     string
		account bool
		final   bool
		says    string // a part of the error; "" if the mail must arrive
	}{
		{name: "STARTTLS and a password", server: mailServer{tls: secure, users: users}, account: true},
		{name: "TLS", server: mailServer{tls: secure, implicit: true, users: users}, tls: "tls", account: true},
		{name: "none", server: mailServer{}, tls: "none"},
		{name: "no STARTTLS", server: mailServer{users: users}, account: true, says: "STARTTLS"},
		{name: "wrong password", server: mailServer{tls: secure, users: map[string]string{"user": "other"}}, account: true,
			final: true, says: "535"},
		{name: "unknown recipient", server: mailServer{tls: secure, refuse: "550 5.1.1 no mailbox of that name"}, final: true,
			says: "no mailbox of that name"},
		{name: "later", server: mailServer{tls: secure, refuse: "451 4.3.0 greylisted"}, says: "greylisted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.server
			s.t = t
			s.start()
			r := rollout.Receiver{Name: "mail", Service: "email", Credentials: map[string]rollout.Credential{},
				Lists:    map[string][]string{"to": {"Bea <bea@example.com>", "cy@example.com"}},
				Settings: map[string]string{"host": "127.0.0.1", "port": s.port(), "from": "Releases <releases@example.com>", "tls": c.tls}}
			if c.account {
				r.Credentials = map[string]rollout.Credential{"username": {Env: "USER"}, "password": {Env: "PASSWORD"}}
			}
			d := deps("")
			d.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
			var ids []string
			for range 2 { // both mails about an event must have the same Message-ID
				err := service.Send(t.Context(), d, r, messageFor(t, r, aborted()))
				if c.says != "" {
					compare.CheckNamed(t, "final", c.final, failureOf(t, err).Final)
					compare.Contains(t, err.Error(), c.says)
					return
				}
				must(t, err)
				got, err := mail.ReadMessage(strings.NewReader(s.mails[len(s.mails)-1]))
				must(t, err)
				ids = append(ids, got.Header.Get("Message-ID"))
				compare.CheckNamed(t, "subject", "shop in prod-eu: release aborted, going back to stable", got.Header.Get("Subject"))
				compare.CheckNamed(t, "Auto-Submitted", "auto-generated", got.Header.Get("Auto-Submitted"))
			}
			if ids[0] != ids[1] || !strings.HasSuffix(ids[0], "@example.com>") {
				t.Errorf("Message-IDs %q", ids)
			}
			first, _ := mail.ReadMessage(strings.NewReader(s.mails[0]))
			body, err := io.ReadAll(quotedprintable.NewReader(first.Body))
			must(t, err)
			const want = "shop in prod-eu: release aborted, going back to stable\n\nmetric error-rate: <!channel> failed & went back\n" +
				"Waits for Git to agree with the stable version\nMetric error-rate: Failed, last [0.2]\n\n" +
				"Release: h1-7b4e2a91d0\nCommit: 9f9f9f9 Cheaper \"basket\" <https://evil.example|click>\nAuthor: Ann <ann@example.com>\n" +
				"Stable: h1-0123456789\nStep: 2/4 setWeight 40\n" +
				"Commit: https://git.example.com/shop/commit/9f9f\nProposal: https://git.example.com/shop/tree/gitrollout/revert/prod-eu/shop\n"
			compare.Check(t, want, strings.TrimRight(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n")+"\n")
			if sent, err := first.Header.Date(); err != nil || !sent.Equal(at) {
				t.Errorf("it is of %v (%v), not of when it happened", sent, err)
			}
			if thread := first.Header.Get("References"); !regexp.MustCompile(`^<[0-9a-f]{32}@example.com>$`).MatchString(thread) ||
				!regexp.MustCompile(`^<[0-9a-f]{32}@`).MatchString(ids[0]) {
				t.Errorf("its thread is %q, its id %q", thread, ids[0])
			}
			compare.CheckNamed(t, "receivers, and without TLS", []any{4, c.tls == "none"}, []any{len(s.to), s.plain})
		})
	}
}

// TestMailPorts checks the default port: 587 for STARTTLS, 465 for implicit TLS, 25 without TLS.
func TestMailPorts(t *testing.T) {
	for _, c := range []struct{ tls, port, want string }{
		{"", "", "mail.test:587"}, {"starttls", "", "mail.test:587"}, {"tls", "", "mail.test:465"}, {"none", "", "mail.test:25"},
		{"tls", "2525", "mail.test:2525"},
	} {
		settings := map[string]string{"host": "mail.test", "tls": c.tls, "port": c.port}
		client, err := service.MailClient(rollout.Receiver{Settings: settings})
		if err != nil || client.ServerAddr() != c.want {
			t.Errorf("%+v: %v, %v", c, client, err)
		}
	}
	if _, err := service.MailClient(rollout.Receiver{Settings: map[string]string{"host": "mail.test", "port": "x"}}); err == nil {
		t.Error("a port that is not a number is taken")
	}
}

// TestMailsThatCannotBe checks that an invalid sender, recipient or port, and each 5xx response, are final failures.
func TestMailsThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(rollout.Receiver){
		"sender":    func(r rollout.Receiver) { r.Settings["from"] = "nobody" },
		"recipient": func(r rollout.Receiver) { r.Lists["to"] = []string{"nobody"} },
		"port":      func(r rollout.Receiver) { r.Settings["port"] = "x" },
	} {
		r := rollout.Receiver{Name: "mail", Service: "email", Lists: map[string][]string{"to": {"cy@example.com"}},
			Settings: map[string]string{"host": "127.0.0.1", "port": "1", "from": "a@example.com"}}
		change(r)
		if err := service.Send(t.Context(), deps(""), r, notify.Message{}); !failureOf(t, err).Final {
			t.Errorf("%s: %v", name, err)
		}
	}
	for code, final := range map[int]bool{499: false, 500: true, 554: true, 421: false} {
		compare.CheckNamed(t, fmt.Sprint(code), final, service.IsFinalMail(fmt.Errorf("x: %w", &textproto.Error{Code: code})))
	}
}
