package service

import (
	"context"
	"maps"
	"net/http"

	"github.com/wneessen/go-mail"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

func Table() map[string]row { return table } // returns the services, which the documentation lists
func Usual() notify.Profile { return chat }  // returns the profile of most services

// WithPigeon returns the table with a row for the service pigeon.
func WithPigeon(p notify.Profile) rows {
	known := maps.Clone(table)
	known["pigeon"] = row{send: sendPigeon, Profile: p}
	return known
}

// sendPigeon sends to a service that exists only in a test.
func sendPigeon(ctx context.Context, s *session, m notify.Message) error {
	_, err := s.post(ctx, s.base("")+"/loft", http.Header{"X-Ring": {s.values["token"]}}, object{"note": m.Title})
	return err
}

// Send sends a message to a service of the table.
func (t rows) Send(ctx context.Context, d Deps, r rollout.Receiver, m notify.Message) error {
	return t.send(ctx, d, r, m)
}

// Object is a JSON object in a service's message.
type Object = object

var (
	Templated   = templated   // returns the body that the service's template makes of a message
	IsFinalMail = isFinalMail // reports whether a mail server's answer is final
)

// MailClient returns a mail client with a receiver's settings.
func MailClient(r rollout.Receiver) (*mail.Client, error) { return mailClient(&session{receiver: r}) }
