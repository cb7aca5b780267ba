package service

import (
	"context"
	"html"
	"net/url"

	"gitrollout.dev/gitrollout/publish/notify"
)

// sendGoogleChat posts a card to a space's webhook, in one thread for each
// release. https://developers.google.com/workspace/chat/quickstart/webhooks
func sendGoogleChat(ctx context.Context, s *session, m notify.Message) error {
	u, err := url.Parse(s.values["url"])
	if err != nil {
		return &Failure{msg: "the url is not an address"}
	}
	query := u.Query()
	query.Set("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD")
	u.RawQuery = query.Encode()

	paint := func(text string) string {
		return `<font color="` + colors[m.Outcome] + `">` + html.EscapeString(text) + `</font>`
	}
	widgets := []any{map[string]any{"textParagraph": map[string]any{"text": "<b>" + paint(m.Title) + "</b>"}}}
	if m.Text != "" {
		widgets = append(widgets, map[string]any{"textParagraph": map[string]any{"text": html.EscapeString(m.Text)}})
	}
	for _, f := range m.Facts {
		widgets = append(widgets, map[string]any{"decoratedText": map[string]any{"topLabel": f.Name, "text": html.EscapeString(f.Value), "wrapText": true}})
	}
	var buttons []any
	for _, b := range []notify.Fact{{Name: "Commit", Value: m.CommitURL}, {Name: "Proposal", Value: m.ProposalURL}} {
		if b.Value != "" {
			buttons = append(buttons, map[string]any{"text": b.Name, "onClick": map[string]any{"openLink": map[string]any{"url": b.Value}}})
		}
	}
	if len(buttons) > 0 {
		widgets = append(widgets, map[string]any{"buttonList": map[string]any{"buttons": buttons}})
	}
	_, err = s.post(ctx, u.String(), nil, map[string]any{
		"fallbackText": m.Title,
		"cardsV2":      []any{map[string]any{"cardId": "release", "card": map[string]any{"sections": []any{map[string]any{"widgets": widgets}}}}},
		"thread":       map[string]any{"threadKey": m.Cluster + "/" + m.App + "/" + string(m.Release)},
	})
	return err
}
