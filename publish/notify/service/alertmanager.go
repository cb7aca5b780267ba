package service

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/publish/notify"
)

// alertLasts is how long an unresolved alert lasts. Without endsAt, it would last only resolve_timeout (5 minutes).
const alertLasts = 30 * 24 * time.Hour

// sendAlertmanager posts alerts. The labels identify an alert, and an endsAt in the past resolves it.
// https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
func sendAlertmanager(ctx context.Context, s *session, m notify.Message) error {
	var alerts []any
	at := m.At.UTC()
	for _, over := range m.Over {
		alerts = append(alerts, object{"labels": alertLabels(m, over), "endsAt": at.Format(time.RFC3339)})
	}
	if !m.Ends && m.Trouble != "" {
		alert := object{
			"labels": alertLabels(m, m.Trouble), "startsAt": at.Format(time.RFC3339),
			"endsAt":      at.Add(alertLasts).Format(time.RFC3339),
			"annotations": map[string]string{"summary": m.Title, "description": m.Text},
		}
		tell(alert, "generatorURL", m.CommitURL)
		alerts = append(alerts, alert)
	}
	if len(alerts) == 0 {
		return nil
	}
	header := http.Header{}
	switch {
	case s.values["token"] != "":
		header.Set("Authorization", "Bearer "+s.values["token"])
	case s.values["username"] != "":
		pair := s.values["username"] + ":" + s.values["password"]
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	_, err := s.post(ctx, s.base("")+"/api/v2/alerts", header, alerts)
	return err
}

func alertLabels(m notify.Message, trouble string) map[string]string {
	return map[string]string{"alertname": "GitrolloutRelease", "cluster": m.Cluster, "app": m.App, "trouble": trouble,
		"severity": "critical"}
}
