package service

import (
	"context"
	"html"
	"net/http"
	"strings"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// sendGrafana posts an annotation. If the release has ended or is being rolled back, the annotation covers the whole
// release. https://grafana.com/docs/grafana/latest/developers/http_api/annotations
func sendGrafana(ctx context.Context, s *session, m notify.Message) error {
	text := html.EscapeString(m.Title)
	if m.Text != "" {
		text += "\n" + html.EscapeString(m.Text)
	}
	for _, l := range linksOf(m) {
		text += "\n" + `<a href="` + html.EscapeString(l.Value) + `">` + l.Name + `</a>`
	}
	tags := append([]string{"gitrollout", "cluster:" + m.Cluster, "app:" + m.App, "event:" + string(m.Kind)},
		s.receiver.Lists["tags"]...)
	body := object{"text": strings.ReplaceAll(text, "\n", "<br>"), "tags": tags, "time": m.At.UnixMilli()}
	switch m.Kind {
	case rollout.EventCompleted, rollout.EventAborted, rollout.EventRolledBack:
		if !m.Since.IsZero() && m.Since.Before(m.At) {
			body["time"], body["timeEnd"] = m.Since.UnixMilli(), m.At.UnixMilli()
		}
	}
	if dashboard := s.receiver.Settings["dashboard"]; dashboard != "" {
		body["dashboardUID"] = dashboard
	}
	_, err := s.post(ctx, s.base("")+"/api/annotations", http.Header{"Authorization": {"Bearer " + s.values["token"]}},
		body)
	return err
}
