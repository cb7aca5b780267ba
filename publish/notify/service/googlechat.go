package service

import (
	"context"
	"net/url"

	"gitrollout.dev/gitrollout/publish/notify"
)

func sendGoogleChat(ctx context.Context, s *session, m notify.Message) error {
	u, err := url.Parse(s.values["url"])
	if err != nil {
		return &Failure{msg: "the url is not an address"}
	}
	query := u.Query()
	query.Set("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD")
	u.RawQuery = query.Encode()
	s.values["url"] = u.String()
	return sendChat(ctx, s, m)
}
