package service

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"gitrollout.dev/gitrollout/publish/notify"
)

var slackPasses = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited"}

func sendSlack(ctx context.Context, s *session, m notify.Message) error {
	if s.values["url"] != "" {
		return sendChat(ctx, s, m)
	}
	body, err := templated(s.receiver, m)
	if err != nil {
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
