package service

import (
	"context"
	"strconv"
	"time"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// sendDiscord posts an embed to the webhook of a channel. The message mentions no user.
// https://docs.discord.com/developers/resources/webhook#execute-webhook
func sendDiscord(ctx context.Context, s *session, m notify.Message) error {
	color, _ := strconv.ParseInt(colors[m.Outcome][1:], 16, 32)
	embed := object{"title": plain(m.Title), "color": color, "timestamp": m.At.UTC().Format(time.RFC3339)}
	tell(embed, "description", plain(m.Text))
	tell(embed, "url", m.CommitURL)
	fields := rollout.Mapped(m.Facts, func(f notify.Fact) any {
		return object{"name": f.Name, "value": rollout.Cut(plain(f.Value), 1024), "inline": true}
	})
	if m.ProposalURL != "" {
		fields = append(fields, object{"name": "Proposal", "value": "[" + m.Proposal + "](" + m.ProposalURL + ")"})
	}
	if len(fields) > 0 {
		embed["fields"] = fields
	}
	_, err := s.post(ctx, s.values["url"], nil,
		object{"embeds": list{embed}, "allowed_mentions": object{"parse": []string{}}})
	return err
}
