package simulate

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

var record = flag.Bool("record", false, "add the records of new files in testdata/recorded; records of older versions must stay")

// recorded is a story with the state branches that an older gitrollout wrote after each command.
type recorded struct {
	*testing.T
	*Story
	name string
}

// restarts replaces the files of the state branch, starts a process, and returns its errors.
func (r *recorded) restarts(files map[string]string) []string {
	r.Helper()
	if files != nil {
		r.git.Commit(memgit.Change{Branch: r.config.StateBranch, Author: "Ann", When: r.cluster.Kube.Now, Edits: edits(files)})
	}
	r.event = &Event{}
	r.start()
	if err := r.rest(); err != nil {
		r.Fatalf("%s: %v", r.name, err)
	}
	if err := r.process.Unreadable(); err != nil {
		return append(r.event.Errors, err.Error())
	}
	return r.event.Errors
}

func (r *recorded) files() map[string]string { return r.git.Files(r.git.Head(r.config.StateBranch)) }

// stays starts a process with the given files on the state branch. It fails the test if the process changes an object or these files.
func (r *recorded) stays(what string, files map[string]string, wantError string) {
	r.Helper()
	r.becomes(what, files, files, wantError)
}

// becomes starts a process with the given files on the state branch. It fails the test if the process changes an object, or if a
// file in want has other content at the end.
func (r *recorded) becomes(what string, files, want map[string]string, wantError string) {
	r.Helper()
	version := r.cluster.version
	errs := strings.Join(r.restarts(files), "\n")
	if r.cluster.version != version {
		r.Errorf("%s: %s: the cluster has changed", r.name, what)
	}
	for file, text := range want {
		if is := r.files()[file]; is != text {
			r.Errorf("%s: %s: %s is:\n%s\nwant:\n%s", r.name, what, file, is, text)
		}
	}
	if wantError == "" && errs != "" || !strings.Contains(errs, wantError) {
		r.Errorf("%s: %s: the error is %q, want %q", r.name, what, errs, wantError)
	}
}

// lost returns a field that the newer record lacks or changes. Texts for users, apiVersion and seal may differ.
func lost(at string, was, is any) string {
	switch was := was.(type) {
	case map[string]any:
		now, _ := is.(map[string]any)
		for name, value := range was {
			isText := slices.Contains([]string{"apiVersion", "reason", "message", "seal"}, name)
			if missing := lost(at+"."+name, value, now[name]); missing != "" && !isText {
				return missing
			}
		}
	case []any:
		now, _ := is.([]any)
		for i, value := range was {
			if missing := lost(fmt.Sprintf("%s[%d]", at, i), value, slices.Concat(now, make([]any, i+1))[i]); missing != "" {
				return missing
			}
		}
	default:
		if !reflect.DeepEqual(was, is) {
			return fmt.Sprintf("%s is %v, was %v", at, is, was)
		}
	}
	return ""
}

func document(t *testing.T, text string) (out any) {
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// as returns the files with the given apiVersion. It renews the seals if this is rollout.APIVersion.
func (r *recorded) as(version string, files map[string]string) map[string]string {
	out := map[string]string{}
	for file, text := range files {
		out[file] = strings.Replace(text, rollout.AlphaVersion, version, 1)
		if s, err := rollout.ParseState(file, []byte(text)); err == nil && version == rollout.APIVersion {
			s.APIVersion = version
			data, err := s.Encode()
			if err != nil {
				r.Fatal(err)
			}
			out[file] = string(data)
		}
	}
	return out
}

// TestRecordedStates replays releases with the state branches that older versions of gitrollout wrote after each command. The present
// version must decide as the older version did, lose no field, and continue from each older record. A record is written again if its
// apiVersion is newer than the configuration's. While a record has an unknown apiVersion, no object changes and an error tells why.
// Afterwards, the release continues at the same step.
func TestRecordedStates(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded states: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	records, script := map[string]map[string]string{}, &txtar.Archive{}
	for _, f := range archive.Files {
		if rest, is := strings.CutPrefix(f.Name, "after/"); is {
			at, path, _ := strings.Cut(rest, "/")
			if records[at] == nil {
				records[at] = map[string]string{}
			}
			records[at][path] = string(f.Data)
			continue
		}
		script.Files = append(script.Files, f)
	}
	parsed, err := ParseScript(txtar.Format(script))
	if err != nil {
		t.Fatal(err)
	}
	o, err := parsed.Options(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	o.Options = reconciler.Options{Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler)}
	s, err := NewStory(o)
	if err != nil {
		t.Fatal(err)
	}
	adds := *record && len(records) == 0
	for i, line := range strings.Split(strings.TrimSpace(parsed.Timeline), "\n") {
		r, at := &recorded{t, s, fmt.Sprintf("after line %d, %q", i+1, line)}, fmt.Sprint(i+1)
		e := &Event{Text: line}
		if err := s.play(e); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if errs := append(e.Errors, r.restarts(nil)...); len(errs) > 0 {
			t.Errorf("%s: %q", r.name, errs)
		}
		t.Log(line, s.status())
		if adds {
			for path, text := range r.files() {
				archive.Files = append(archive.Files, txtar.File{Name: "after/" + at + "/" + path, Data: []byte(text)})
			}
			continue
		}
		r.compare(records[at])
	}
	if adds {
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *recorded) compare(was map[string]string) {
	r.Helper()
	for file, text := range was {
		if missing := lost("", document(r.T, text), document(r.T, r.files()[file])); missing != "" {
			r.Fatalf("%s: %s: %s", r.name, file, missing)
		}
	}
	r.stays("a restart", was, "")
	one := map[string]string{}
	for file, text := range r.as("gitrollout.dev/v9", was) {
		if file != rollout.ClusterPath {
			one[file] = text
		}
	}
	const unknown = `"gitrollout.dev/v9" is not known; use gitrollout.dev/v1beta1, or a newer gitrollout`
	r.stays("apps of an unknown version", one, unknown)
	r.stays("a branch of an unknown version", r.as("gitrollout.dev/v9", was), rollout.ClusterPath+": apiVersion: "+unknown)
	r.becomes("a version newer than the configuration's", r.as(rollout.APIVersion, was), was, "")
}
