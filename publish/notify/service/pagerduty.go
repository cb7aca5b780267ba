package service

import (
	"context"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// sendPagerDuty triggers and resolves incidents. The dedup_key identifies a problem, so a repeated message opens no
// second incident. https://developer.pagerduty.com/docs/events-api-v2-overview
func sendPagerDuty(ctx context.Context, s *session, m notify.Message) error {
	address := s.base("https://events.pagerduty.com") + "/v2/enqueue"
	for _, over := range m.Over {
		_, err := s.post(ctx, address, nil,
			object{"routing_key": s.values["routingKey"], "event_action": "resolve", "dedup_key": over})
		if err != nil {
			return err
		}
	}
	if m.Ends || m.Trouble == "" {
		return nil
	}
	links := rollout.Mapped(linksOf(m), func(l notify.Fact) any { return object{"href": l.Value, "text": l.Name} })
	body := object{
		"routing_key": s.values["routingKey"], "event_action": "trigger", "dedup_key": m.Trouble, "client": "gitrollout",
		"payload": object{
			"summary": m.Title, "source": m.Cluster, "severity": "critical", "timestamp": m.At.UTC().Format(time.RFC3339),
			"component": m.App, "group": m.Cluster, "class": string(m.Kind), "custom_details": details(m),
		},
	}
	if len(links) > 0 {
		body["links"] = links
	}
	_, err := s.post(ctx, address, nil, body)
	return err
}

func details(m notify.Message) map[string]string {
	d := map[string]string{}
	for _, f := range m.Facts {
		d[f.Name] = f.Value
	}
	if m.Text != "" {
		d["Text"] = m.Text
	}
	return d
}

func linksOf(m notify.Message) []notify.Fact {
	all := []notify.Fact{{Name: "Commit", Value: m.CommitURL}, {Name: "Proposal", Value: m.ProposalURL}}
	return slices.DeleteFunc(all, func(l notify.Fact) bool { return l.Value == "" })
}
