package service

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// cloudEvent is a CloudEvent 1.0 in its structured form. Source and id together
// are unique to what happened, so a receiver knows what it has had.
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

// eventData is the event's content. Fields may be added to it.
type eventData struct {
	Cluster  string              `json:"cluster"`
	App      string              `json:"app"`
	Kinds    []rollout.EventKind `json:"kinds"`
	Outcome  rollout.Outcome     `json:"outcome"`
	Title    string              `json:"title"`
	Text     string              `json:"text,omitempty"`
	Reason   string              `json:"reason,omitempty"`
	Release  rollout.Hash        `json:"release,omitempty"`
	Commit   string              `json:"commit,omitempty"`
	Author   string              `json:"author,omitempty"`
	Subject  string              `json:"subject,omitempty"`
	Since    string              `json:"since,omitempty"`
	Stable   rollout.Hash        `json:"stable,omitempty"`
	Step     int                 `json:"step,omitempty"`
	Steps    int                 `json:"steps,omitempty"`
	StepName string              `json:"stepName,omitempty"`
	Weight   int                 `json:"weight,omitempty"`
	Waiting  string              `json:"waiting,omitempty"`
	Proposal string              `json:"proposal,omitempty"`
	Analyses []analysisData      `json:"analyses,omitempty"`
	Links    map[string]string   `json:"links,omitempty"`
	Trouble  string              `json:"trouble,omitempty"`
	Over     []string            `json:"over,omitempty"`
	Repeat   bool                `json:"repeat,omitempty"`
}

type analysisData struct {
	Run     string                `json:"run"`
	Metric  string                `json:"metric"`
	Phase   rollout.AnalysisPhase `json:"phase"`
	Value   string                `json:"value,omitempty"`
	Message string                `json:"message,omitempty"`
}

// signatureHeader holds sha256= and the HMAC of the body, in hex, as the
// webhooks of forges have it.
const signatureHeader = "X-Gitrollout-Signature"

func sendWebhook(ctx context.Context, s *session, m notify.Message) error {
	body, err := call.Encode(cloudEventOf(m))
	if err != nil {
		return &Failure{Final: true, msg: err.Error()}
	}
	header := http.Header{}
	for name, value := range s.headers {
		header.Set(name, value)
	}
	if key := s.values["signingKey"]; key != "" {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		header.Set(signatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	address := cmp.Or(s.values["url"], s.receiver.Settings["address"])
	_, err = s.postBytes(ctx, address, header, body, "application/cloudevents+json")
	return err
}

func cloudEventOf(m notify.Message) cloudEvent {
	d := eventData{
		Cluster: m.Cluster, App: m.App, Kinds: m.Kinds, Outcome: m.Outcome, Title: m.Title, Text: m.Text, Reason: m.Reason,
		Release: m.Release, Commit: m.Commit, Author: m.Author, Subject: m.Subject, Stable: m.Stable,
		Step: m.Step, Steps: m.Steps, StepName: m.StepName, Weight: m.Weight,
		Waiting: m.Waiting, Proposal: m.Proposal, Trouble: m.Trouble, Over: m.Over, Repeat: m.Repeat,
	}
	if !m.Since.IsZero() {
		d.Since = m.Since.UTC().Format(time.RFC3339)
	}
	for _, a := range m.Analyses {
		d.Analyses = append(d.Analyses, analysisData(a))
	}
	for name, link := range map[string]string{"commit": m.CommitURL, "proposal": m.ProposalURL} {
		if link != "" {
			if d.Links == nil {
				d.Links = map[string]string{}
			}
			d.Links[name] = link
		}
	}
	return cloudEvent{
		SpecVersion: "1.0", ID: m.ID, Source: "/gitrollout/" + m.Cluster, Type: "dev.gitrollout.release." + string(m.Kind),
		Subject: m.App,
		Time:    m.At.UTC().Format(time.RFC3339), DataContentType: "application/json", Data: d,
	}
}
