package service

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// cloudEvent is a CloudEvent 1.0 in structured mode. A repeat has the same Source and ID.
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            string    `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

type eventData struct {
	rollout.Event
	Links map[string]string `json:"links,omitempty"`
}

// signatureHeader has "sha256=" and the hexadecimal HMAC of the body, as in webhooks of forges.
const signatureHeader = "X-Gitrollout-Signature"

func sendWebhook(ctx context.Context, s *session, m notify.Message) error {
	d := eventData{Event: m.Event, Links: map[string]string{}}
	for _, l := range linksOf(m) {
		d.Links[strings.ToLower(l.Name)] = l.Value
	}
	body, err := call.Encode(cloudEvent{
		SpecVersion: "1.0", ID: m.ID, Source: "/gitrollout/" + m.Cluster, Type: "dev.gitrollout.release." + string(m.Kind),
		Subject: m.App, Time: m.At.UTC().Format(time.RFC3339), DataContentType: "application/json", Data: d,
	})
	if err != nil {
		return &Failure{Final: true, msg: err.Error()}
	}
	if key := s.values["signingKey"]; key != "" {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		s.headers.Set(signatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	address := cmp.Or(s.values["url"], s.receiver.Settings["address"])
	_, err = s.postBytes(ctx, address, s.headers, body, "application/cloudevents+json")
	return err
}
