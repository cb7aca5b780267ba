package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

var teamsStyles = map[rollout.Outcome]string{
	rollout.OutcomeGood: "good", rollout.OutcomeBad: "attention", rollout.OutcomeWarning: "warning", rollout.OutcomeNews: "emphasis",
}

// sendTeams posts an Adaptive Card to a workflow's webhook.
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
func sendTeams(ctx context.Context, s *session, m notify.Message) error {
	body := []any{map[string]any{
		"type": "Container", "style": teamsStyles[m.Outcome], "bleed": true,
		"items": []any{map[string]any{"type": "TextBlock", "text": m.Title, "weight": "Bolder", "size": "Medium", "wrap": true}},
	}}
	if m.Text != "" {
		body = append(body, map[string]any{"type": "TextBlock", "text": m.Text, "wrap": true})
	}
	var facts []any
	for _, f := range m.Facts {
		facts = append(facts, map[string]any{"title": f.Name, "value": f.Value})
	}
	if len(facts) > 0 {
		body = append(body, map[string]any{"type": "FactSet", "facts": facts})
	}
	card := map[string]any{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body}
	var actions []any
	if m.CommitURL != "" {
		actions = append(actions, map[string]any{"type": "Action.OpenUrl", "title": "Commit", "url": m.CommitURL})
	}
	if m.ProposalURL != "" {
		actions = append(actions, map[string]any{"type": "Action.OpenUrl", "title": "Proposal", "url": m.ProposalURL})
	}
	if len(actions) > 0 {
		card["actions"] = actions
	}
	_, err := s.post(ctx, s.values["url"], nil, map[string]any{
		"type":        "message",
		"attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card}},
	})
	return err
}
