package render

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// variables are the values for ${name} in objects, as in Flux. If nil, nothing is substituted.
type variables map[string]string

// substituteKey is a label or annotation whose value "disabled" excludes the object from substitution.
const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// These constants limit one object. The library recurses for each part of a text, and copies the text for each $$.
const (
	maxParts  = 20_000
	maxCopied = 1 << 30 // bytes
)

func (f *treeFS) variables(app rollout.App) (variables, error) {
	if !app.Variables.On {
		return nil, nil
	}
	all := variables{}
	for i, p := range app.Variables.From() {
		real, entry, err := f.resolve(unroot(path.Clean(p)))
		if err != nil || entry.Kind != rollout.File {
			return nil, orMissing(err, rollout.Invalidf(app.Path, fmt.Sprintf("substituteFrom[%d].file", i),
				"%s is not a file of this commit", p).WithFix("name it from the repository's root"))
		}
		content, err := f.read(real, entry)
		if err != nil {
			return nil, err
		}
		values, err := variablesIn(p, content)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, values)
	}
	maps.Copy(all, app.Variables.Map())
	for name, value := range all {
		all[name] = strings.ReplaceAll(value, "\n", "")
	}
	return all, nil
}

func variablesIn(file string, content []byte) (values map[string]string, err error) {
	if slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) {
		values, err = configMapIn(file, content)
	} else {
		values, err = environmentIn(file, content)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err == nil && !rollout.IsVariable(name) {
			err = rollout.Invalidf(file, "", "%q is not a valid variable name", name).WithFix(rollout.BadVariable)
		}
	}
	return values, err
}

func configMapIn(file string, content []byte) (map[string]string, error) {
	if _, err := measure(file, "", content); err != nil {
		return nil, err
	}
	var object struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	docs := slices.DeleteFunc(splitDocuments(string(content)), func(text string) bool {
		var doc any
		return yaml.Unmarshal([]byte(text), &doc) == nil && doc == nil
	})
	if len(docs) != 1 || yaml.Unmarshal([]byte(docs[0]), &object) != nil || object.Kind != "ConfigMap" {
		return nil, &rollout.InvalidError{File: file, Msg: "is not one ConfigMap with only strings in data",
			Fix: "write one ConfigMap, or lines of NAME=value in a file that ends in .env"}
	}
	return object.Data, nil
}

func environmentIn(file string, content []byte) (map[string]string, error) {
	values, n := map[string]string{}, 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, is := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !is {
			return nil, &rollout.InvalidError{File: file, Msg: fmt.Sprintf("line %d is not NAME=value", n),
				Fix: "write one variable in each line; # begins a comment"}
		}
		if q := value; len(q) > 1 && q[0] == q[len(q)-1] && (q[0] == '"' || q[0] == '\'') {
			value = q[1 : len(q)-1]
		}
		values[name] = value
	}
	return values, nil
}

func (v variables) into(object rollout.Object, raw []byte) (rollout.Object, []string, error) {
	off := func(field string) bool { return object.Map("metadata", field)[substituteKey] == "disabled" }
	if v == nil || !bytes.Contains(raw, []byte("${")) && !bytes.Contains(raw, []byte("$$")) ||
		off("labels") || off("annotations") {
		return object, nil, nil
	}
	invalid := func(field, fix, format string, args ...any) (rollout.Object, []string, error) {
		why := rollout.Invalidf("", field, format, args...).WithFix("%s", fix)
		why.About = object.Ref()
		return nil, nil, why
	}
	text, err := yaml.JSONToYAML(raw)
	if err != nil {
		return invalid("", "", "cannot be written as YAML: %s", rollout.OneLine(err.Error()))
	}
	replaced, unset, err := v.eval(string(text))
	const keep = "or annotate the object " + substituteKey + ": disabled"
	switch {
	case unset != "":
		return invalid(v.blamed(object), fmt.Sprintf("give it a value in substitute or substituteFrom of the app's entry, "+
			"write ${%s:=default}, or $${%s} for the text itself", unset, unset), "the variable %s is not set", unset)
	case err != nil:
		return invalid(v.blamed(object), "write $${ where no variable is meant, "+keep,
			"has a ${ that cannot be read: %s", rollout.OneLine(err.Error()))
	case len(replaced) > maxOutput:
		return invalid("", "split the app", "renders to more than %d bytes", maxOutput)
	}
	if _, err = measure("", "", []byte(replaced)); err == nil {
		raw, err = yaml.YAMLToJSON([]byte(replaced))
	}
	var substituted rollout.Object
	if err == nil {
		substituted, err = decodeObject(raw)
	}
	if err == nil && (substituted.Kind() == "" || substituted.Name() == "") {
		err = errors.New("it has no kind or no metadata.name")
	}
	if err != nil {
		return invalid("", "check the substituted values, "+keep,
			"is not a valid object after the substitution of variables: %s", rollout.YAMLText(err.Error()))
	}
	return substituted, inScripts(object), nil
}

func (v variables) eval(text string) (out, unset string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("a number in it is too large")
		}
	}()
	escapes := strings.Count(text, "$$")
	if parts := strings.Count(text, "${") + escapes; parts > maxParts || escapes*len(text) > maxCopied {
		return "", "", fmt.Errorf("there are %d expressions", parts)
	}
	if bad := unsupported.FindString(strings.ReplaceAll(text, "$$", "")); bad != "" {
		return "", "", fmt.Errorf("%s… is not an expression of Flux", bad) // the library treats :? and :+ like :-
	}
	parsed, err := envsubst.Parse(text)
	if err != nil {
		return "", "", err
	}
	asked := ""
	out, err = parsed.Execute(func(name string) (string, bool) {
		asked = name
		value, set := v[name]
		return value, set
	})
	if err != nil {
		unset = asked
	}
	return out, unset, err
}

func (v variables) blamed(object rollout.Object) (field string) {
	eachText(map[string]any(object), "", func(at, text string) {
		if _, _, err := v.eval(text); err != nil && field == "" {
			field = at
		}
	})
	return field
}

func eachText(value any, at string, f func(at, text string)) {
	switch value := value.(type) {
	case string:
		f(at, value)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			eachText(value[key], fieldBelow(at, key), f)
		}
	case []any:
		for i, element := range value {
			eachText(element, fmt.Sprintf("%s[%d]", at, i), f)
		}
	}
}

func fieldBelow(at, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return at + "[" + key + "]"
	case at != "":
		return at + "." + key
	}
	return key
}

// scriptFile matches a key such as data[run.sh]. scriptLine and shellSigns match a command with shell operators.
var (
	scriptFile = regexp.MustCompile(`\.(sh|bash|zsh|ksh)\]$`)
	scriptLine = regexp.MustCompile(`\.(command|args)\[\d+\]$`)
	shellSigns = regexp.MustCompile(`\n|;|&&|\|`)
	inBraces   = regexp.MustCompile(`\$\{[^}]*\}?`)
)

var unsupported = regexp.MustCompile(`\$\{\w+:[?+]`)

// inScripts warns about scripts in which gitrollout may have replaced the script's own variables.
func inScripts(object rollout.Object) (warnings []string) {
	eachText(map[string]any(object), "", func(at, text string) {
		switch {
		case strings.HasPrefix(text, "#!"), scriptFile.MatchString(at):
		case scriptLine.MatchString(at) && shellSigns.MatchString(text):
		default:
			return
		}
		left, what, write := strings.ReplaceAll(text, "$${", ""), "", ""
		if part := inBraces.FindString(left); part != "" {
			what, write = part+" in the script is substituted before the shell reads it", "$"+part
		} else if strings.Contains(left, "$$") {
			what, write = "$$ in it becomes $", "$$$$"
		} else {
			return
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s is a script, and %s; write %s for the shell's own variable",
			shortRef(object.Ref()), at, what, write))
	})
	return warnings
}
