package service

import (
	"context"

	"gitrollout.dev/gitrollout/publish/notify"
)

// sendRocketChat posts to an incoming webhook. https://docs.rocket.chat/docs/integrations
func sendRocketChat(ctx context.Context, s *session, m notify.Message) error {
	attachment := object{
		"title": plain(m.Title), "color": colors[m.Outcome], "ts": m.At.UTC().Format("2006-01-02T15:04:05Z"),
	}
	tell(attachment, "text", plain(m.Text))
	tell(attachment, "title_link", m.CommitURL)
	var fields []any
	for _, f := range m.Facts {
		fields = append(fields, object{"title": f.Name, "value": plain(f.Value), "short": true})
	}
	if m.ProposalURL != "" {
		fields = append(fields,
			object{"title": "Proposal", "value": "[" + m.Proposal + "](" + m.ProposalURL + ")", "short": false})
	}
	if len(fields) > 0 {
		attachment["fields"] = fields
	}
	body := object{"text": "", "alias": "gitrollout", "attachments": list{attachment}}
	tell(body, "channel", s.receiver.Settings["channel"])
	_, err := s.post(ctx, s.values["url"], nil, body)
	return err
}
