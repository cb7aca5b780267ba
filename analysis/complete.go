package analysis

import (
	"fmt"
	"regexp"
	"time"
)

// Known holds arguments whose values are known only at a measurement.
type Known struct {
	Latest string            // the new version's pod-template-hash
	Stable string            // stable's pod-template-hash
	Texts  map[string]string // values such as templates.NAME.podTemplateHash

	At           time.Time
	Since        time.Time // when the present weight was reached
	ReleaseSince time.Time
}

// Complete fills in a provider configuration's arguments.
func Complete(m Metric, known Known, secret func(SecretRef) (string, error)) (done map[string]any, err error) {
	values := Values{Plain: map[string]string{}}
	for name, about := range m.Pods {
		if values.Plain[name], err = known.text(about); err != nil {
			return nil, fmt.Errorf("argument %s: %w", name, err)
		}
	}
	for name, ref := range m.Secrets {
		if values.Plain[name], err = secret(ref); err != nil {
			return nil, err
		}
	}
	config, _ := eachText(m.Config, "", func(text, _ string) (string, error) { return known.WithElapsed(text), nil })
	filled, err := fill(config, values, "provider."+m.Provider)
	if err != nil {
		return nil, err
	}
	done, _ = filled.(map[string]any)
	return done, nil
}

func (k Known) text(about string) (string, error) {
	if hash, is := map[string]string{"Latest": k.Latest, "Stable": k.Stable}[about]; is {
		return hash, nil
	}
	var unknown string
	out := variable.ReplaceAllStringFunc(about, func(found string) string {
		name := variable.FindStringSubmatch(found)[1]
		text, ok := k.Texts[name]
		if !ok {
			unknown = name
		}
		return text
	})
	if unknown != "" {
		return "", fmt.Errorf("{{%s}} is not known", unknown)
	}
	return out, nil
}

var variable = regexp.MustCompile(`\{\{\s*([^{}\s]+)\s*\}\}`)

// Variables returns a text's placeholders, such as templates.NAME.podTemplateHash.
func Variables(text string) []string {
	var names []string
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}
