package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

var teamsStyles = map[rollout.Outcome]string{
	rollout.OutcomeGood: "good", rollout.OutcomeBad: "attention", rollout.OutcomeWarning: "warning",
	rollout.OutcomeNews: "emphasis",
}

// sendTeams posts an Adaptive Card to the webhook of a workflow.
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
func sendTeams(ctx context.Context, s *session, m notify.Message) error {
	body := list{object{
		"type": "Container", "style": teamsStyles[m.Outcome], "bleed": true,
		"items": list{
			object{"type": "TextBlock", "text": plain(m.Title), "weight": "Bolder", "size": "Medium", "wrap": true},
		},
	}}
	if m.Text != "" {
		body = append(body, object{"type": "TextBlock", "text": plain(m.Text), "wrap": true})
	}
	facts := rollout.Mapped(m.Facts, func(f notify.Fact) any { return object{"title": f.Name, "value": plain(f.Value)} })
	if len(facts) > 0 {
		body = append(body, object{"type": "FactSet", "facts": facts})
	}
	card := object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard",
		"version": "1.4", "body": body}
	actions := rollout.Mapped(linksOf(m), func(l notify.Fact) any {
		return object{"type": "Action.OpenUrl", "title": l.Name, "url": l.Value}
	})
	if len(actions) > 0 {
		card["actions"] = actions
	}
	_, err := s.post(ctx, s.values["url"], nil, object{
		"type": "message",
		"attachments": list{object{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil,
			"content": card}},
	})
	return err
}
