package service

import (
	"context"
	"net/http"
	"net/url"

	"gitrollout.dev/gitrollout/publish/notify"
)

// sendOpsgenie creates and closes alerts. A repeat has the same alias, and only increases the alert's count.
// https://docs.opsgenie.com/docs/alert-api
func sendOpsgenie(ctx context.Context, s *session, m notify.Message) error {
	address := s.base("https://api.opsgenie.com") + "/v2/alerts"
	header := http.Header{"Authorization": {"GenieKey " + s.values["apiKey"]}}
	for _, over := range m.Over {
		body := object{"source": "gitrollout", "note": m.Title}
		if _, err := s.post(ctx, address+"/"+url.PathEscape(over)+"/close?identifierType=alias", header, body); err != nil {
			return err
		}
	}
	if m.Ends || m.Trouble == "" {
		return nil
	}
	body, err := templated(s.receiver, m)
	if err == nil {
		_, err = s.post(ctx, address, header, body)
	}
	return err
}
