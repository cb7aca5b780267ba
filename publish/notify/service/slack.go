package service

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

var colors = map[rollout.Outcome]string{
	rollout.OutcomeGood: "#2eb67d", rollout.OutcomeBad: "#e01e5a", rollout.OutcomeWarning: "#ecb22e",
	rollout.OutcomeNews: "#36c5f0",
}

// slackPasses lists the transient errors of chat.postMessage.
var slackPasses = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited"}

// sendSlack posts to an incoming webhook. If there is a token, it uses chat.postMessage instead.
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
func sendSlack(ctx context.Context, s *session, m notify.Message) error {
	body := slackMessage(m)
	if s.values["url"] != "" {
		_, err := s.post(ctx, s.values["url"], nil, body)
		return err
	}
	body["channel"] = s.receiver.Settings["channel"]
	answer, err := s.post(ctx, s.base("https://slack.com/api")+"/chat.postMessage",
		http.Header{"Authorization": {"Bearer " + s.values["token"]}}, body)
	if err != nil {
		return err
	}
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || !said.OK {
		return &Failure{Final: err == nil && !slices.Contains(slackPasses, said.Error), msg: "slack.com: " + said.Error}
	}
	return nil
}

func slackMessage(m notify.Message) object {
	blocks := list{slackSection("*" + slackText(m.Title) + "*")}
	if m.Text != "" {
		blocks = append(blocks, slackSection(slackText(m.Text)))
	}
	var fields []any
	for _, f := range m.Facts {
		value := slackText(f.Value)
		if f.Name == "Commit" && m.CommitURL != "" {
			value = "<" + m.CommitURL + "|" + strings.ReplaceAll(value, "|", "¦") + ">"
		}
		fields = append(fields, object{"type": "mrkdwn", "text": rollout.Cut("*"+f.Name+"*\n"+value, 2000)})
	}
	if len(fields) > 0 {
		blocks = append(blocks, object{"type": "section", "fields": fields})
	}
	if m.ProposalURL != "" {
		blocks = append(blocks, slackSection("<"+m.ProposalURL+"|"+slackText(m.Proposal)+">"))
	}
	return object{
		"text": slackText(m.Title), "unfurl_links": false,
		"attachments": list{object{"color": colors[m.Outcome], "blocks": blocks}},
	}
}

func slackSection(text string) object {
	return object{"type": "section", "text": object{"type": "mrkdwn", "text": rollout.Cut(text, 3000)}}
}

// slackText escapes text so that it cannot contain links or mentions.
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
