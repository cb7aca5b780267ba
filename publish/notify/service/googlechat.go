package service

import (
	"context"
	"html"
	"net/url"

	"gitrollout.dev/gitrollout/publish/notify"
)

// sendGoogleChat posts a card to the webhook of a space, in one thread for each release.
// https://developers.google.com/workspace/chat/quickstart/webhooks
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
	widgets := list{object{"textParagraph": object{"text": "<b>" + paint(m.Title) + "</b>"}}}
	if m.Text != "" {
		widgets = append(widgets, object{"textParagraph": object{"text": html.EscapeString(m.Text)}})
	}
	for _, f := range m.Facts {
		widgets = append(widgets,
			object{"decoratedText": object{"topLabel": f.Name, "text": html.EscapeString(f.Value), "wrapText": true}})
	}
	var buttons []any
	for _, l := range linksOf(m) {
		buttons = append(buttons, object{"text": l.Name, "onClick": object{"openLink": object{"url": l.Value}}})
	}
	if len(buttons) > 0 {
		widgets = append(widgets, object{"buttonList": object{"buttons": buttons}})
	}
	_, err = s.post(ctx, u.String(), nil, object{
		"fallbackText": m.Title,
		"cardsV2":      list{object{"cardId": "release", "card": object{"sections": list{object{"widgets": widgets}}}}},
		"thread":       object{"threadKey": m.Cluster + "/" + m.App + "/" + string(m.Release)},
	})
	return err
}
