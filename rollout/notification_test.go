package rollout_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const notifiedApps = "apps:\n- path: apps/*\nnotifications:\n"

func TestParseReceivers(t *testing.T) {
	c := parsed(t, notifiedApps+`
- name: team
  slack: {url: {secretRef: {name: chat, key: slack, namespace: ops}}}
  events: [paused, aborted]
  apps: [shop, cart-*]
  template:
    title: "{{.App}} {{.Kind}}"
    text: "{{range .Analyses}}{{.Metric}} {{end}}{{.Text}}"
- name: bus
  webhook:
    address: https://bus.example.com/in
    headers: {X-Key: {env: GITROLLOUT_NOTIFY_BUS}}
    signingKey: {file: bus}
- name: mail
  email: {host: smtp.example.com, port: 465, tls: tls, from: Shop <shop@example.com>, to: [ann@example.com],
    username: {env: GITROLLOUT_NOTIFY_USER}, password: {env: GITROLLOUT_NOTIFY_PASS}}
- {name: most, email: {host: x, port: 65535, from: a@example.com, to: [b@example.com]}}
- {name: least, email: {host: x, port: 25, from: a@example.com, to: [b@example.com]}}
- {name: a, discord: {url: {env: GITROLLOUT_NOTIFY_A}}}
`)
	r := c.Receivers[0]
	want := rollout.Credential{Secret: rollout.SecretRef{Name: "chat", Key: "slack"}, Namespace: "ops"}
	if r.Service != "slack" || r.Credentials["url"] != want || !r.Wants("cart-eu") || r.Wants("other") {
		t.Errorf("got %+v", r)
	}
	compare.Check(t, []rollout.EventKind{rollout.EventPaused, rollout.EventAborted}, r.On)
	if bus := c.Receivers[1]; bus.Headers["X-Key"].Env != "GITROLLOUT_NOTIFY_BUS" || bus.Credentials["signingKey"].File != "bus" ||
		bus.Settings["address"] != "https://bus.example.com/in" {
		t.Errorf("got %+v", bus)
	}
	if mail := c.Receivers[2]; mail.Settings["port"] != "465" || mail.Lists["to"][0] != "ann@example.com" {
		t.Errorf("got %+v", mail)
	}
	if most, least := c.Receivers[3], c.Receivers[4]; most.Settings["port"] != "65535" || least.Settings["port"] != "25" {
		t.Errorf("the ports are %q and %q", most.Settings["port"], least.Settings["port"])
	}
	if discord := c.Receivers[5]; discord.Service != "discord" || discord.Credentials["url"].Env != "GITROLLOUT_NOTIFY_A" {
		t.Errorf("got %+v", discord)
	}
}

func TestParseReceiversRefuses(t *testing.T) {
	const env = "{env: GITROLLOUT_NOTIFY_A}"
	const discord, mail = "discord: {url: " + env + "}", "host: x, from: a@example.com, to: [b@example.com]"
	for _, c := range []struct{ name, entry, field, says, fix string }{
		{"no service", "{name: a}", "[0]", "names 0 services", "slack"},
		{"two services", "{name: a, discord: {url: " + env + "}, slack: {url: " + env + "}}", "[0]", "names 2 services", ""},
		{"no name", "{" + discord + "}", "[0].name", "is not a name", ""},
		{"a credential in Git", "{name: a, slack: {url: https://hooks.slack.com/services/T/B/X}}", "[0].slack.url", "in Git", "secretRef"},
		{"a block that is a credential", "{name: a, slack: https://hooks.slack.com/services/T/B/X}", "[0].slack",
			"must be a mapping, not a string", ""},
		{"no credential", "{name: a, slack: {}}", "[0].slack.url", "is missing", "url or token"},
		{"url and token", "{name: a, slack: {url: " + env + ", token: " + env + ", channel: x}}", "[0].slack.token", "conflicts with url", ""},
		{"token without a channel", "{name: a, slack: {token: " + env + "}}", "[0].slack.channel", "is needed with token", ""},
		{"another service's field", "{name: a, slack: {url: " + env + ", host: x}}", "[0].slack.host", "is not a field of slack", "channel"},
		{"an unknown field", "{name: a, slack: {url: " + env + ", color: x}}", "[0].slack.color", "is not a known field", ""},
		{"a credential of Git's", "{name: a, slack: {url: {env: GITROLLOUT_GIT_TOKEN}}}", "[0].slack.url.env",
			"does not begin with GITROLLOUT_NOTIFY_", ""},
		{"a path", "{name: a, slack: {url: {file: ../../token}}}", "[0].slack.url.file", "is not a file's name", ""},
		{"two ways", "{name: a, slack: {url: {file: x, env: GITROLLOUT_NOTIFY_A}}}", "[0].slack.url", "needs exactly one", ""},
		{"a misspelt way", "{name: a, slack: {url: {secret: x}}}", "[0].slack.url.secret", "is not a known field", "secretRef"},
		{"half a Secret", "{name: a, slack: {url: {secretRef: {name: x}}}}", "[0].slack.url.secretRef", "needs a name and a key", ""},
		{"an unknown event", "{name: a, events: [finished], " + discord + "}", "[0].events[0]", "is not an event", "completed"},
		{"Argo's trigger", "{name: a, events: [on-rollout-completed], " + discord + "}", "[0].events[0]", "is not an event", "use completed"},
		{"an event that is never over", "{name: a, events: [completed], pagerDuty: {routingKey: " + env + "}}", "[0].events[0]",
			"opens none", "aborted"},
		{"a pattern", "{name: a, apps: ['['], " + discord + "}", "[0].apps[0]", "is not a pattern", ""},
		{"a template", "{name: a, template: {title: '{{.Nope}}'}, " + discord + "}", "[0].template.title", "Nope", "docs/notifications.md"},
		{"a template that is none", "{name: a, template: {text: '{{if}}'}, " + discord + "}", "[0].template.text", "missing value for if", ""},
		{"an address", "{name: a, webhook: {address: example.com}}", "[0].webhook.address", "is not an address", ""},
		{"an address with a password", "{name: a, webhook: {address: 'https://u:pass@example.com'}}", "[0].webhook.address",
			"***@example.com", ""},
		{"a header", "{name: a, webhook: {address: https://example.com, headers: {'a b': " + env + "}}}", "[0].webhook.headers.a b",
			"is not a valid header name", ""},
		{"a recipient", "{name: a, email: {host: x, from: a@example.com, to: [nobody]}}", "[0].email.to[0]", "is not an address", ""},
		{"a password in the open", "{name: a, email: {tls: none, " + mail + ", username: " + env + ", password: " + env + "}}", "[0].email.tls",
			"password", ""},
		{"an address without a host", "{name: a, webhook: {address: 'https:///in'}}", "[0].webhook.address", "is not an address", ""},
		{"an address of a file", "{name: a, webhook: {address: 'ftp://example.com'}}", "[0].webhook.address", "is not an address", ""},
		{"an address that is none", "{name: a, webhook: {address: 'https://example.com/%zz'}}", "[0].webhook.address", "is not an address", ""},
		{"a sender", "{name: a, email: {host: x, from: nobody, to: [b@example.com]}}", "[0].email.from", "is not an address", ""},
		{"a second recipient", "{name: a, email: {host: x, from: a@example.com, to: [b@example.com, nobody]}}", "[0].email.to[1]",
			"is not an address", ""},
		{"an unknown security", "{name: a, email: {tls: ssl, " + mail + "}}", "[0].email.tls", "is not known", ""},
		{"a port beyond all", "{name: a, email: {port: 65536, " + mail + "}}", "[0].email.port", "65536 is not a port", ""},
		{"a port below all", "{name: a, email: {port: -1, " + mail + "}}", "[0].email.port", "-1 is negative", ""},
		{"headers of a service without headers", "{name: a, slack: {url: " + env + ", headers: {b: " + env + "}}}", "[0].slack.headers",
			"is not a field of slack", ""},
		{"half an account", "{name: a, email: {" + mail + ", username: " + env + "}}", "[0].email.password", "is needed with username", ""},
		{"the same name", "{name: a, discord: {url: " + env + "}}\n- {name: a, " + discord + "}", "[1].name", "twice", ""},
	} {
		_, err := rollout.ParseConfig(prodConfig, []byte(configHead+notifiedApps+"- "+c.entry+"\n"))
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("%s: got %v", c.name, err)
		}
		if invalid.Field != "notifications"+c.field || !strings.Contains(invalid.Msg, c.says) || !strings.Contains(invalid.Fix, c.fix) {
			t.Errorf("%s: field %q says %q, fix %q", c.name, invalid.Field, invalid.Msg, invalid.Fix)
		}
		if strings.Contains(err.Error(), "hooks.slack.com") || strings.Contains(err.Error(), "u:pass") {
			t.Errorf("%s: tells a credential: %v", c.name, err)
		}
	}
}

func TestNotified(t *testing.T) {
	n := rollout.Notified{By: "p", Receivers: map[string]rollout.Cursor{"b": {Told: "2", App: "shop", Claimed: "3"}, "a": {}}}
	data, err := n.Encode()
	must(t, err)
	got, err := rollout.ParseNotified(data)
	must(t, err)
	again, _ := got.Encode()
	if string(again) != string(data) || got.Receivers["b"] != n.Receivers["b"] {
		t.Errorf("%s became %s", data, again)
	}
	if _, err := rollout.ParseNotified([]byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Notified\nnews: 1\n")); err == nil {
		t.Error("an unknown field is read over")
	}
}

// TestTemplatesEnd checks that ParseConfig refuses a template that may run without end or use too much memory, and that it accepts
// usual templates.
func TestTemplatesEnd(t *testing.T) {
	template := func(text string) error {
		quoted, err := json.Marshal(text)
		must(t, err)
		_, err = rollout.ParseConfig(prodConfig, []byte(configHead+notifiedApps+
			"- name: team\n  slack: {url: {env: GITROLLOUT_NOTIFY_SLACK}}\n  template: {text: "+string(quoted)+"}\n"))
		return err
	}
	for name, text := range map[string]string{
		"a number":                       "{{range 9223372036854775807}}{{end}}",
		"a number by a name":             "{{$n := 9223372036854775807}}{{range $n}}{{end}}",
		"a number of a function":         "{{range len (printf \"%1000000d\" 1)}}{{range len (printf \"%1000000d\" 1)}}{{end}}{{end}}",
		"in a branch not taken":          "{{if .Kind}}{{range 9223372036854775807}}{{end}}{{end}}",
		"in the branch of an empty list": "{{range .Over}}x{{else}}{{range 9223372036854775807}}{{end}}{{end}}",
		"lists in lists":                 "{{range .Kinds}}{{range $.Kinds}}{{range $.Kinds}}{{end}}{{end}}{{end}}",
		"a template that calls":          "{{define \"a\"}}{{template \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}",
		"a block":                        "{{block \"a\" .}}{{end}}",
		"a text that doubles":            "{{$a := \"aaaaaaaa\"}}" + strings.Repeat("{{$a = print $a $a}}", 50),
		"a text that doubles, format":    "{{$a := \"aaaaaaaa\"}}" + strings.Repeat("{{$a = printf \"%s%s\" $a $a}}", 50),
	} {
		var invalid *rollout.InvalidError
		if err := template(text); !errors.As(err, &invalid) || !strings.Contains(invalid.Field, "template.text") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{
		"{{range .Analyses}}{{.Metric}}: {{.Value | printf \"%q\"}}{{end}}",
		"{{range $i, $kind := .Kinds}}{{if $i}}, {{end}}{{$kind}}{{else}}none{{end}}",
		"{{with .Reason}}{{. | html}}{{end}}{{range $.Over}}{{.}}{{end}}", "{{range .Kinds}}{{range $.Analyses}}{{.Run}}{{end}}{{end}}",
	} {
		must(t, template(text))
	}
}
