package service

import (
	"context"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/publish/notify"
)

// alertLasts is the duration of an unresolved alert. Alertmanager's default is 5 minutes.
const alertLasts = 30 * 24 * time.Hour

func sendAlertmanager(ctx context.Context, s *session, m notify.Message) error {
	body, err := templated(s.receiver, m)
	alerts, _ := body["alerts"].([]any)
	if err != nil || len(alerts) == 0 {
		return err
	}
	header := http.Header{}
	switch {
	case s.values["token"] != "":
		header.Set("Authorization", "Bearer "+s.values["token"])
	case s.values["username"] != "":
		(&http.Request{Header: header}).SetBasicAuth(s.values["username"], s.values["password"])
	}
	_, err = s.post(ctx, s.base("")+"/api/v2/alerts", header, alerts)
	return err
}
