package rollout

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/mail"
	"net/url"
	"reflect"
	"slices"
	"strings"
	texttemplate "text/template" // renamed, because tests declare a function "template"
	"time"
)

// Receiver is an entry of a Config's notifications.
type Receiver struct {
	Name        string
	Service     string                 // a key of Services: slack, msteams …
	Settings    map[string]string      // not secret: address, channel, host …
	Lists       map[string][]string    // several values: to, tags
	Credentials map[string]Credential  // places of secrets: url, token …
	Headers     map[string]Credential  // places of HTTP headers' values, for a webhook
	On          []EventKind            // requested kinds; empty: the service's defaults
	Apps        []string               // globs for apps' names; empty: all apps
	Title, Text *texttemplate.Template // executed with an Event; nil: default texts
}

// Wants reports whether the receiver gets an app's events.
func (r Receiver) Wants(app string) bool {
	return concerns(r.Apps, app)
}

// ServiceFields lists a service's allowed fields.
type ServiceFields struct {
	Needs []string // "a|b" requires a or b
	May   []string
	Only  []EventKind // supported kinds; empty: all
}

// TroubleKinds returns the kinds that open an incident in an on-call service.
func TroubleKinds() []EventKind {
	return []EventKind{EventAborted, EventStalled, EventDegraded, EventHeld}
}

// Services returns each service's fields, by name.
func Services() map[string]ServiceFields {
	return map[string]ServiceFields{
		"slack":        {Needs: []string{"url|token"}, May: []string{"channel", "address"}},
		"msteams":      {Needs: []string{"url"}},
		"discord":      {Needs: []string{"url"}},
		"googleChat":   {Needs: []string{"url"}},
		"rocketChat":   {Needs: []string{"url"}, May: []string{"channel"}},
		"webhook":      {Needs: []string{"url|address"}, May: []string{"headers", "signingKey"}},
		"email":        {Needs: []string{"host", "from", "to"}, May: []string{"port", "tls", "username", "password"}},
		"pagerDuty":    {Needs: []string{"routingKey"}, May: []string{"address"}, Only: TroubleKinds()},
		"opsgenie":     {Needs: []string{"apiKey"}, May: []string{"address"}, Only: TroubleKinds()},
		"alertmanager": {Needs: []string{"address"}, May: []string{"token", "username", "password"}, Only: TroubleKinds()},
		"grafana":      {Needs: []string{"address", "token"}, May: []string{"dashboard", "tags"}},
	}
}

type receiverFile struct {
	Name     string       `json:"name"`
	Events   []string     `json:"events"` // not "on", because YAML reads the key "on" as true
	Apps     []string     `json:"apps"`
	Template templateFile `json:"template"`

	Slack        *serviceFile `json:"slack"`
	MSTeams      *serviceFile `json:"msteams"`
	Discord      *serviceFile `json:"discord"`
	GoogleChat   *serviceFile `json:"googleChat"`
	RocketChat   *serviceFile `json:"rocketChat"`
	Webhook      *serviceFile `json:"webhook"`
	Email        *serviceFile `json:"email"`
	PagerDuty    *serviceFile `json:"pagerDuty"`
	Opsgenie     *serviceFile `json:"opsgenie"`
	Alertmanager *serviceFile `json:"alertmanager"`
	Grafana      *serviceFile `json:"grafana"`
}

type templateFile struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

type serviceFile struct {
	APIKey     *credentialFile           `json:"apiKey"`
	Password   *credentialFile           `json:"password"`
	RoutingKey *credentialFile           `json:"routingKey"`
	SigningKey *credentialFile           `json:"signingKey"`
	Token      *credentialFile           `json:"token"`
	URL        *credentialFile           `json:"url"`
	Username   *credentialFile           `json:"username"`
	Headers    map[string]credentialFile `json:"headers"`

	Address   string   `json:"address"`
	Channel   string   `json:"channel"`
	Host      string   `json:"host"`
	Port      int      `json:"port"`
	From      string   `json:"from"`
	To        []string `json:"to"`
	TLS       string   `json:"tls"`
	Dashboard string   `json:"dashboard"`
	Tags      []string `json:"tags"`
}

type section struct {
	place
	into *Receiver
	set  []string
}

func parseReceivers(file string, raws []receiverFile) (all []Receiver, err error) {
	for i, raw := range raws {
		s := &section{place: place{file, fmt.Sprintf("notifications[%d]", i)}}
		r, err := s.receiver(raw)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o Receiver) bool { return o.Name == r.Name }) {
			return nil, s.invalid("name", "give each entry a different name", "%q is listed twice", r.Name)
		}
		all = append(all, *r)
	}
	return all, nil
}

func (s *section) receiver(raw receiverFile) (r *Receiver, err error) {
	r = &Receiver{Name: raw.Name, Apps: raw.Apps, Settings: map[string]string{}, Lists: map[string][]string{},
		Credentials: map[string]Credential{}}
	s.into = r
	if !formats["label"].Pattern.MatchString(r.Name) {
		return nil, s.invalid("name", "use lower-case letters, digits and -, at most 63", "%q is not a name", r.Name)
	}
	blocks := map[string]*serviceFile{}
	for field, value := range reflect.ValueOf(raw).Fields() {
		if block, is := value.Interface().(*serviceFile); is && block != nil {
			blocks[field.Tag.Get("json")] = block
		}
	}
	names := slices.Sorted(maps.Keys(blocks))
	if len(names) != 1 {
		return nil, &InvalidError{File: s.file, Field: s.field, Msg: fmt.Sprintf("names %d services %v", len(names), names),
			Fix: "write one of " + strings.Join(slices.Sorted(maps.Keys(Services())), ", ")}
	}
	r.Service = names[0]
	if err := s.kinds(raw.Events); err != nil {
		return nil, err
	}
	if err := checkGlobs(s.file, s.field+".apps", raw.Apps); err != nil {
		return nil, err
	}
	if r.Title, err = s.template("title", raw.Template.Title); err != nil {
		return nil, err
	}
	if r.Text, err = s.template("text", raw.Template.Text); err != nil {
		return nil, err
	}
	block := &section{place: place{s.file, s.field + "." + r.Service}, into: r}
	return r, block.service(*blocks[r.Service])
}

var argoTriggers = map[string]EventKind{
	"on-rollout-updated": EventStarted, "on-rollout-step-completed": EventStepCompleted, "on-rollout-paused": EventPaused,
	"on-rollout-completed": EventCompleted, "on-rollout-aborted": EventAborted,
	"on-analysis-run-running": EventAnalysisStarted,
	"on-analysis-run-failed":  EventAnalysisFailed, "on-analysis-run-error": EventAnalysisError,
}

func (s *section) kinds(names []string) error {
	for i, name := range names {
		kind := EventKind(name)
		if !slices.Contains(EventKinds(), kind) {
			all := Mapped(EventKinds(), func(k EventKind) string { return string(k) })
			slices.Sort(all)
			fix := "use some of " + strings.Join(all, ", ")
			if ours, known := argoTriggers[name]; known {
				fix = "use " + string(ours)
			}
			return s.invalid(fmt.Sprintf("events[%d]", i), fix, "%q is not an event", name)
		}
		if only := Services()[s.into.Service].Only; len(only) > 0 && !slices.Contains(only, kind) {
			return s.invalid(fmt.Sprintf("events[%d]", i), fmt.Sprintf("use some of %v", only),
				"%s accepts only events that open an incident, and %q opens none", s.into.Service, name)
		}
		s.into.On = append(s.into.On, kind)
	}
	return nil
}

// template parses a template and executes it with an almost empty event, to find misspelt fields.
func (s *section) template(name, text string) (*texttemplate.Template, error) {
	if text == "" {
		return nil, nil
	}
	t, err := texttemplate.New(name).Option("missingkey=error").Funcs(boundedFuncs()).Parse(text)
	if err == nil && len(t.Templates()) > 1 {
		err = errors.New("defines another template: write that text in place")
	}
	if err == nil {
		err = checkNodes(t.Root, 0)
	}
	if err == nil {
		err = t.Execute(io.Discard, Event{Kind: EventPaused, Kinds: []EventKind{EventPaused}, At: time.Unix(0, 0)})
	}
	if err != nil {
		return nil, s.invalid("template."+name, "see docs/notifications.md for the fields of an event",
			"is not a template: %v", strings.TrimPrefix(oneLine(err), "template: "))
	}
	return t, nil
}

func (s *section) service(raw serviceFile) error {
	for field, value := range reflect.ValueOf(raw).Fields() {
		name := field.Tag.Get("json")
		if value.IsZero() || value.Kind() != reflect.Pointer && value.Kind() != reflect.Int && value.Len() == 0 {
			continue
		}
		s.set = append(s.set, name)
		var err error
		switch given := value.Interface().(type) {
		case *credentialFile:
			s.into.Credentials[name], err = s.credential(name, *given)
		case map[string]credentialFile:
			s.into.Headers, err = s.headers(given)
		case []string:
			s.into.Lists[name] = given
		default:
			s.into.Settings[name] = fmt.Sprint(given)
		}
		if err != nil {
			return err
		}
	}
	slices.Sort(s.set)
	if err := s.checkFields(); err != nil {
		return err
	}
	return s.checkValues(raw)
}

func (s *section) checkFields() error {
	row := Services()[s.into.Service]
	allowed := slices.Clone(row.May)
	for _, need := range row.Needs {
		among := strings.Split(need, "|")
		allowed = append(allowed, among...)
		isSet := func(name string) bool { return slices.Contains(s.set, name) }
		switch first := slices.IndexFunc(among, isSet); {
		case first < 0:
			return s.invalid(among[0], "write "+strings.Join(among, " or "), "is missing")
		case slices.ContainsFunc(among[first+1:], isSet):
			return s.invalid(among[1], "write "+strings.Join(among, " or ")+", and not both", "conflicts with %s", among[0])
		}
	}
	for _, name := range s.set {
		if !slices.Contains(allowed, name) {
			return s.invalid(name, "leave it out; "+s.into.Service+" has "+strings.Join(allowed, ", "), "is not a field of %s",
				s.into.Service)
		}
	}
	return nil
}

func (s *section) checkValues(raw serviceFile) error {
	if raw.Address != "" {
		u, err := url.Parse(raw.Address)
		switch {
		case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
			return s.invalid("address", "write https://host or the like", "%q is not an address", Redact(raw.Address))
		case u.User != nil:
			return s.invalid("address", "name the Secret that holds them", "%q has credentials", Redact(raw.Address))
		}
	}
	if _, hasToken := s.into.Credentials["token"]; s.into.Service == "slack" && hasToken != (raw.Channel != "") {
		return s.invalid("channel", "write channel together with token; the url of a webhook has its own channel",
			"is needed with token, and only with it")
	}
	if s.into.Service == "email" {
		for i, text := range append([]string{raw.From}, raw.To...) {
			if _, err := mail.ParseAddress(text); err != nil && text != "" {
				field := "from"
				if i > 0 {
					field = fmt.Sprintf("to[%d]", i-1)
				}
				return s.invalid(field, "write ann@example.com, or Ann <ann@example.com>", "%q is not an address", text)
			}
		}
		if !slices.Contains([]string{"", "starttls", "tls", "none"}, raw.TLS) {
			return s.invalid("tls", "use starttls (the default), tls or none", "%q is not known", raw.TLS)
		}
		if raw.Port > 65535 {
			return s.invalid("port", "use 587, 465 or 25", "%d is not a port", raw.Port)
		}
	}
	_, user := s.into.Credentials["username"]
	if user && raw.TLS == "none" {
		return s.invalid("tls", "use starttls or tls", "is none, which would send the password unencrypted")
	}
	if _, password := s.into.Credentials["password"]; user != password {
		return s.invalid("password", "write both, or neither", "is needed with username, and only with it")
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Headers)) {
		if !formats["header"].Pattern.MatchString(name) {
			return s.invalid("headers."+name, "use letters, digits and -", "is not a valid header name")
		}
	}
	return nil
}
