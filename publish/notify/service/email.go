package service

import (
	"cmp"
	"context"
	"errors"
	netmail "net/mail"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// sendEmail sends one message to all recipients. A repeat has the same Message-ID, so servers may drop it.
func sendEmail(ctx context.Context, s *session, m notify.Message) error {
	msg, errMsg := email(s, m)
	client, errClient := mailClient(s)
	if err := cmp.Or(errMsg, errClient); err != nil {
		return &Failure{Final: true, msg: err.Error()}
	}
	if err := client.DialAndSendWithContext(ctx, msg); err != nil {
		return &Failure{Final: isFinalMail(err), msg: s.receiver.Settings["host"] + ": " + err.Error()}
	}
	return nil
}

func email(s *session, m notify.Message) (*mail.Msg, error) {
	msg := mail.NewMsg()
	from := s.receiver.Settings["from"]
	if err := cmp.Or(msg.From(from), msg.To(s.receiver.Lists["to"]...)); err != nil {
		return nil, err
	}
	domain := "gitrollout.dev"
	if parsed, err := netmail.ParseAddress(from); err == nil {
		domain = parsed.Address[strings.LastIndex(parsed.Address, "@")+1:]
	}
	msg.SetMessageIDWithValue(rollout.Digest([]byte(s.receiver.Name+"\n"+m.ID), 16) + "@" + domain)
	msg.SetDateWithValue(m.At)
	msg.Subject(m.Title)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // prevents automatic replies (RFC 3834)
	// A release's messages share an id in References, so that they form a thread.
	thread := rollout.Digest([]byte(m.Cluster+"/"+m.App+"/"+string(m.Release)), 16)
	msg.SetGenHeader(mail.HeaderReferences, "<"+thread+"@"+domain+">")
	msg.SetBodyString(mail.TypeTextPlain, emailText(m))
	return msg, nil
}

func emailText(m notify.Message) string {
	var b strings.Builder
	b.WriteString(m.Title + "\n\n")
	if m.Text != "" {
		b.WriteString(m.Text + "\n\n")
	}
	for _, f := range slices.Concat(m.Facts, linksOf(m)) {
		b.WriteString(f.Name + ": " + f.Value + "\n")
	}
	return b.String()
}

// mailClient uses port 587 with STARTTLS (default), port 465 with TLS, or port 25 without TLS.
func mailClient(s *session) (*mail.Client, error) {
	security := s.receiver.Settings["tls"]
	port, secured := 587, mail.WithTLSPolicy(mail.TLSMandatory)
	switch security {
	case "tls":
		port, secured = 465, mail.WithSSL()
	case "none":
		port, secured = 25, mail.WithTLSPolicy(mail.NoTLS)
	}
	if text := s.receiver.Settings["port"]; text != "" {
		var err error
		if port, err = strconv.Atoi(text); err != nil {
			return nil, err
		}
	}
	options := []mail.Option{mail.WithTimeout(Timeout), secured, mail.WithPort(port)}
	host := s.receiver.Settings["host"]
	if s.TLS != nil && security != "none" {
		config := s.TLS.Clone()
		config.ServerName = host
		options = append(options, mail.WithTLSConfig(config))
	}
	if user := s.values["username"]; user != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user),
			mail.WithPassword(s.values["password"]))
	}
	return mail.NewClient(host, options...)
}

// isFinalMail reports whether the server's response is 5xx. Other errors are transient (RFC 5321, section 4.2.1).
func isFinalMail(err error) bool {
	if sent := new(mail.SendError); errors.As(err, &sent) && sent.ErrorCode() != 0 {
		return sent.ErrorCode() >= 500
	}
	var answer *textproto.Error
	return errors.As(err, &answer) && answer.Code >= 500
}
