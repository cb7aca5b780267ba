package service

import (
	"context"
	"embed"
	"html"
	"strconv"
	"strings"
	"text/template"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// templates has YAML templates of the services' messages, which are sent as JSON.
//
//go:embed templates
var templates embed.FS

var colors = map[rollout.Outcome]text{
	rollout.OutcomeGood: "#2eb67d", rollout.OutcomeBad: "#e01e5a", rollout.OutcomeWarning: "#ecb22e",
	rollout.OutcomeNews: "#36c5f0",
}

func sendChat(ctx context.Context, s *session, m notify.Message) error {
	body, err := templated(s.receiver, m)
	if err == nil {
		_, err = s.post(ctx, s.values["url"], nil, body)
	}
	return err
}

func templated(r rollout.Receiver, m notify.Message) (body object, err error) {
	facts := func(f notify.Fact) fact { return fact{text(f.Name), text(f.Value)} }
	of := card{
		App: text(m.App), Cluster: text(m.Cluster), Title: text(m.Title), Text: text(m.Text), Release: text(m.Release),
		CommitURL: text(m.CommitURL), Proposal: text(m.Proposal), ProposalURL: text(m.ProposalURL),
		Kind: text(m.Kind), Trouble: text(m.Trouble), Ends: m.Ends,
		Over:    rollout.Mapped(m.Over, func(over string) text { return text(over) }),
		Outcome: text(m.Outcome), Color: colors[m.Outcome], At: text(m.At.UTC().Format(time.RFC3339)),
		Lasts:   text(m.At.UTC().Add(alertLasts).Format(time.RFC3339)),
		Channel: text(r.Settings["channel"]),
		Facts:   rollout.Mapped(m.Facts, facts), Links: rollout.Mapped(linksOf(m), facts),
	}
	file, b := r.Service+".yaml", strings.Builder{}
	t, err := template.New(file).Funcs(template.FuncMap{"join": join}).ParseFS(templates, "templates/"+file)
	if err == nil {
		err = t.Execute(&b, of)
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(b.String()), &body)
	}
	if err != nil {
		return nil, &Failure{Final: true, msg: err.Error()}
	}
	return body, nil
}

// card is the templates' data. The templates omit empty values that a service refuses.
type card struct {
	App, Cluster, Title, Text, Release, CommitURL, Proposal, ProposalURL, Kind, Trouble text

	Outcome, Color text // such as #2eb67d
	At, Lasts      text // time of the event; end of an alert
	Over           []text
	Ends           bool
	Channel        text
	Facts, Links   []fact
}

type fact struct{ Name, Value text }

// text is a value of a card. Templates print text in quotes, so that its content cannot add YAML fields.
type text string

func (t text) String() string { return strconv.QuoteToASCII(strings.ToValidUTF8(string(t), "\ufffd")) }

func (t text) Cut(most int) text { return text(rollout.Cut(string(t), most)) }

// Plain makes users' Markdown harmless: it breaks hidden links and mentions.
func (t text) Plain() text {
	return text(strings.NewReplacer("](", "] (", "]:", "] :", "][", "] [", "|", "¦", "@all", "@ all", "@here", "@ here",
		"@everyone", "@ everyone").Replace(string(t)))
}

func (t text) HTML() text { return text(html.EscapeString(string(t))) }

func (t text) Slack() text {
	return text(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(string(t)))
}

func (t text) NoBar() text { return text(strings.ReplaceAll(string(t), "|", "¦")) }

func (t text) Number() (int64, error) {
	return strconv.ParseInt(strings.TrimPrefix(string(t), "#"), 16, 32)
}

func join(parts ...text) (all text) {
	for _, part := range parts {
		all += part
	}
	return all
}
