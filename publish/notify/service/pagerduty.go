package service

import (
	"context"
	"slices"

	"gitrollout.dev/gitrollout/publish/notify"
)

// sendPagerDuty triggers and resolves incidents. A repeat has the same dedup_key, and opens no second incident.
// https://developer.pagerduty.com/docs/events-api-v2-overview
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
	body, err := templated(s.receiver, m)
	if err == nil {
		body["routing_key"] = s.values["routingKey"]
		_, err = s.post(ctx, address, nil, body)
	}
	return err
}

func linksOf(m notify.Message) []notify.Fact {
	all := []notify.Fact{{Name: "Commit", Value: m.CommitURL}, {Name: "Proposal", Value: m.ProposalURL}}
	return slices.DeleteFunc(all, func(l notify.Fact) bool { return l.Value == "" })
}
