package analysis_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// templates parses AnalysisTemplates by name. Names that begin with cluster- are ClusterAnalysisTemplates.
func templates(t *testing.T, specs map[string]string) func(analysis.TemplateRef) *analysis.Template {
	t.Helper()
	all := map[analysis.TemplateRef]*analysis.Template{}
	for name, text := range specs {
		var spec any
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		scoped, kind := strings.HasPrefix(name, "cluster-"), "AnalysisTemplate"
		if scoped {
			kind = "ClusterAnalysisTemplate"
		}
		read, err := analysis.ParseTemplate(rollout.Ref{Kind: kind, Name: name}, spec)
		if err != nil {
			t.Fatal(err)
		}
		all[analysis.TemplateRef{name, scoped}] = read
	}
	return func(ref analysis.TemplateRef) *analysis.Template { return all[ref] }
}

const (
	web    = "provider: {web: {url: \"http://m/{{args.path}}\"}}"
	simple = "provider: {web: {url: u}}" // has no arguments
)

// TestInstantiate checks that arguments are filled in, templates are merged, and defaults are set.
func TestInstantiate(t *testing.T) {
	metric := func(name, url string, change func(*analysis.Metric)) analysis.Metric {
		m := analysis.Metric{Name: name, Provider: "web", Config: map[string]any{"url": url}, Count: 1, ConsecutiveErrorLimit: 4, Retention: 10,
			Secrets: map[string]analysis.SecretRef{}, Pods: map[string]string{}}
		if change != nil {
			change(&m)
		}
		return m
	}
	const unfilled = "http://m/{{args.path}}"
	for name, c := range map[string]struct {
		a     string                 // the template that the Rollout references
		below map[string]string      // further templates
		also  []analysis.TemplateRef // further references of the Rollout
		given analysis.Values
		want  []analysis.Metric
	}{
		"defaults": {a: "{args: [{name: path, value: x}], metrics: [{name: m, " + web + "}]}",
			want: []analysis.Metric{metric("m", "http://m/x", nil)}},
		"one measurement needs no interval": {a: "{metrics: [{name: m, count: 1, " + simple + "}]}",
			want: []analysis.Metric{metric("m", "u", nil)}},
		"the Rollout's value goes before the template's": {a: "{args: [{name: path, value: x}], metrics: [{name: m, " + web + "}]}",
			given: analysis.Values{Plain: map[string]string{"path": "y", "other": "z"}}, want: []analysis.Metric{metric("m", "http://m/y", nil)}},
		"numbers, durations and conditions out of arguments": {
			a: `{args: [{name: times, value: "3"}, {name: limit, value: "0.05"}, {name: each, value: 20s}], ` +
				`metrics: [{name: m, count: "{{args.times}}", failureLimit: "{{ args.times }}", interval: "{{args.each}}", initialDelay: 1m, ` +
				`successCondition: "result < {{args.limit}}", ` + simple + `}]}`,
			want: []analysis.Metric{metric("m", "u", func(m *analysis.Metric) {
				m.Count, m.FailureLimit, m.Interval, m.InitialDelay = 3, 3, 20*time.Second, time.Minute
				m.SuccessCondition = "result < 0.05"
			})},
		},
		"a value from a Secret stays as it is": {
			a: "{args: [{name: path, valueFrom: {secretKeyRef: {name: s, key: k}}}], metrics: [{name: m, " + web + "}]}",
			want: []analysis.Metric{metric("m", unfilled,
				func(m *analysis.Metric) { m.Secrets = map[string]analysis.SecretRef{"path": {Name: "s", Key: "k"}} })},
		},
		"and so is a version's hash": {a: "{args: [{name: path}], metrics: [{name: m, " + web + "}]}",
			given: analysis.Values{Pods: map[string]string{"path": "Latest"}},
			want:  []analysis.Metric{metric("m", unfilled, func(m *analysis.Metric) { m.Pods = map[string]string{"path": "Latest"} })}},
		"templates of templates, each once": {
			a: "{templates: [{templateName: b}, {templateName: cluster-c, clusterScope: true}], metrics: [{name: a, " + simple + "}]}",
			below: map[string]string{
				"b":         "{templates: [{templateName: cluster-c, clusterScope: true}], metrics: [{name: b, " + simple + "}]}",
				"cluster-c": "{metrics: [{name: c, " + simple + "}]}",
			},
			also: []analysis.TemplateRef{{"b", false}},
			want: []analysis.Metric{metric("a", "u", nil), metric("b", "u", nil), metric("c", "u", nil)},
		},
		"rules name metrics by expressions": {
			a: "{dryRun: [{metricName: lat.*}], measurementRetention: [{metricName: errors, limit: 20}, " +
				"{metricName: .*, limit: 15}], metrics: [{name: errors, " + simple + "}, {name: latency, " + simple + "}]}",
			want: []analysis.Metric{metric("errors", "u", func(m *analysis.Metric) { m.Retention = 20 }),
				metric("latency", "u", func(m *analysis.Metric) { m.Retention, m.DryRun = 15, true })},
		},
		"an interval without a count goes on": {a: "{metrics: [{name: m, interval: 1m, " + simple + "}]}",
			want: []analysis.Metric{metric("m", "u", func(m *analysis.Metric) { m.Count, m.Interval = 0, time.Minute })}},
		"a start": {a: "{metrics: [{name: m, startWhen: len(result) == 2, " + simple + "}]}",
			want: []analysis.Metric{metric("m", "u", func(m *analysis.Metric) { m.StartWhen = "len(result) == 2" })}},
		"a comparison": {
			a: "{metrics: [{name: m, minSamples: 50, onNoData: wait, compare: {to: stable, " +
				"maxIncrease: 0.01, confidence: 0.99}, provider: {web: {url: '{{args.hash}}'}}}], args: [{name: hash}]}",
			given: analysis.Values{Pods: map[string]string{"hash": "Latest"}},
			want: []analysis.Metric{metric("m", "{{args.hash}}", func(m *analysis.Metric) {
				m.Pods = map[string]string{"hash": "Latest"}
				m.MinSamples, m.OnNoData = 50, rollout.NoDataWait
				m.Compare = &analysis.Compare{MaxIncrease: 0.01, Confidence: 0.99}
			})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			specs := map[string]string{"a": c.a}
			maps.Copy(specs, c.below)
			got, err := analysis.Instantiate(templates(t, specs), append([]analysis.TemplateRef{{"a", false}}, c.also...), c.given, nil)
			if err != nil {
				t.Fatal(err)
			}
			compare.Check(t, c.want, got)
		})
	}
}

// TestInstantiateChecksProviders checks that an error in a provider block names the template and the field.
func TestInstantiateChecksProviders(t *testing.T) {
	find := templates(t, map[string]string{"a": "{templates: [{templateName: b}], metrics: [{name: a, " + simple + "}]}",
		"b": "{metrics: [{name: b, " + simple + "}, {name: c, provider: {job: {}}}]}"})
	check := func(kind string, _ map[string]any) error {
		if kind == "job" {
			return &rollout.InvalidError{Field: "provider.job.spec", Msg: "is missing", Fix: "write it"}
		}
		return nil
	}
	_, err := analysis.Instantiate(find, []analysis.TemplateRef{{"a", false}}, analysis.Values{}, check)
	var got *rollout.InvalidError
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want an InvalidError", err)
	}
	compare.Check(t, &rollout.InvalidError{About: rollout.Ref{Kind: "AnalysisTemplate", Name: "b"},
		Field: "spec.metrics[1].provider.job.spec", Msg: "is missing", Fix: "write it"}, got)
}

// TestMissingTemplate checks that the error about a missing template names the place of the reference: the Rollout or another template.
func TestMissingTemplate(t *testing.T) {
	find := templates(t, map[string]string{"a": "{templates: [{templateName: b}], metrics: [{name: a, " + simple + "}]}"})
	for name, c := range map[string]struct {
		ref   analysis.TemplateRef
		about rollout.Ref
		field string
	}{
		"by the Rollout":   {analysis.TemplateRef{"b", false}, rollout.Ref{}, "templates"},
		"by a template":    {analysis.TemplateRef{"a", false}, rollout.Ref{Kind: "AnalysisTemplate", Name: "a"}, "spec.templates"},
		"of the cluster's": {analysis.TemplateRef{"b", true}, rollout.Ref{}, "templates"},
	} {
		var invalid *rollout.InvalidError
		_, err := analysis.Instantiate(find, []analysis.TemplateRef{c.ref}, analysis.Values{}, nil)
		if !errors.As(err, &invalid) || invalid.About != c.about || invalid.Field != c.field {
			t.Errorf("%s: %#v, want %v of %v", name, err, c.field, c.about)
		}
	}
}

// TestMistakesHaveOneMessage checks that a template with several mistakes always gives the same error, although maps have a random order.
// Otherwise, the app's record in Git would change with each pass of the controller.
func TestMistakesHaveOneMessage(t *testing.T) {
	find := templates(t, map[string]string{"a": `{args: [{name: a}, {name: b}, {name: c}, {name: d}], ` +
		`metrics: [{name: m, successCondition: "(", failureCondition: ")", startWhen: "(", ` + simple + `}]}`})
	for _, given := range []analysis.Values{{}, {Plain: map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"}}} {
		messages := map[string]bool{}
		for range 50 {
			_, err := analysis.Instantiate(find, []analysis.TemplateRef{{"a", false}}, given, nil)
			messages[fmt.Sprint(err)] = true
		}
		if len(messages) != 1 || messages["<nil>"] {
			t.Errorf("the messages are %q", slices.Collect(maps.Keys(messages)))
		}
	}
}

// TestUnknownArguments checks that a placeholder of an undeclared argument is an error in any text, and is not sent to a provider.
func TestUnknownArguments(t *testing.T) {
	values := analysis.Values{Plain: map[string]string{"path": "p"}}
	for name, v := range map[string]any{
		"a text":  "{{args.nope}}",
		"a list":  []any{"{{args.path}}", "{{args.nope}}"},
		"a field": map[string]any{"a": "{{args.path}}", "b": "{{args.nope}}"},
		"below":   map[string]any{"a": []any{map[string]any{"b": "x {{ args.nope }}"}}},
	} {
		var invalid *rollout.InvalidError
		if filled, err := analysis.Fill(v, values, "f"); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "args.nope") {
			t.Errorf("%s: %v, %v", name, filled, err)
		}
	}
	got, err := analysis.Fill([]any{"{{args.path}}", map[string]any{"a": "x{{ args.path }}"}, 3}, values, "f")
	if diff := compare.Diff([]any{"p", map[string]any{"a": "xp"}, 3}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestEachTemplateIsReadOnce checks that each of 40 templates is read once, although each references the next template twice (2^40 paths to
// the last).
func TestEachTemplateIsReadOnce(t *testing.T) {
	const n = 40
	specs := map[string]string{fmt.Sprint("t", n): "{metrics: [{name: m, " + simple + "}]}"}
	for i := range n {
		specs[fmt.Sprint("t", i)] = fmt.Sprintf("{templates: [{templateName: t%d}, {templateName: t%d}]}", i+1, i+1)
	}
	find, looks := templates(t, specs), 0
	counting := func(ref analysis.TemplateRef) *analysis.Template {
		if looks++; looks > 10*n {
			t.Fatal("templates are read again and again")
		}
		return find(ref)
	}
	metrics, err := analysis.Instantiate(counting, []analysis.TemplateRef{{"t0", false}, {"t1", false}}, analysis.Values{}, nil)
	if err != nil || len(metrics) != 1 {
		t.Errorf("%d metrics, error %v, want only the last template's", len(metrics), err)
	}
}

// FuzzParseTemplate checks that parsing and instantiating any spec never panics, and returns only valid metrics.
func FuzzParseTemplate(f *testing.F) {
	for _, text := range []string{
		"{args: [{name: path, value: x}], metrics: [{name: m, " + web + "}]}",
		"{metrics: [{name: m, interval: 1m, count: \"{{args.n}}\", compare: {to: stable}, provider: {prometheus: {}}}]}",
		"{templates: [{templateName: t}]}", "[]", "{metrics: [null]}", "{metrics: [{provider: null}]}", "{args: [{valueFrom: {}}]}",
		"{dryRun: [{metricName: (}], metrics: [{}]}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var spec any
		if yaml.Unmarshal([]byte(text), &spec) != nil {
			return
		}
		read, err := analysis.ParseTemplate(rollout.Ref{Kind: "AnalysisTemplate", Name: "t"}, spec)
		if err != nil {
			return
		}
		metrics, err := analysis.Instantiate(func(analysis.TemplateRef) *analysis.Template { return read }, []analysis.TemplateRef{{"t", false}},
			analysis.Values{}, nil)
		for _, m := range metrics {
			if err != nil || m.Name == "" || m.Provider == "" || m.Count < 0 || m.Interval < 0 || m.Retention < 1 {
				t.Errorf("metric %+v, error %v", m, err)
			}
		}
	})
}

// TestRefused checks that errors name the field and the mistake, and that values exactly at a limit are accepted.
func TestRefused(t *testing.T) {
	metric := func(fields string) string { return "{metrics: [{name: m, " + simple + ", " + fields + "}]}" }
	versions := func(fields string) string {
		return "{args: [{name: hash}], metrics: [{name: m, provider: {web: {url: 'u/{{args.hash}}'}}, " + fields + "}]}"
	}
	pairs := func(provider string) string {
		return strings.ReplaceAll(versions("compare: {to: stable}"), "web:", provider+":")
	}
	datadog := func(fields, config string) string {
		return "{args: [{name: hash}], metrics: [{name: m, " + fields + ", provider: {datadog: {apiVersion: v2, " + config + "}}}]}"
	}
	cloudWatch := func(fields, queries string) string {
		return "{args: [{name: hash}], metrics: [{name: m, " + fields + ", provider: {cloudWatch: {metricDataQueries: [" + queries + "]}}}]}"
	}
	const web = "spec.metrics[0].provider.web: "
	const sameVersion = "is the same for both versions, so compare would compare a version with itself"
	const noPair = `are not "bad" and "of", which compare needs`
	const cloudWatchField = "spec.metrics[0].provider.cloudWatch.metricDataQueries: "
	for name, c := range map[string]struct{ a, want string }{
		"Nothing":     {"{args: [{name: x}]}", "spec.metrics: is empty"},
		"Template":    {"{templates: [{templateName: b}]}", ""},
		"OnlyMetrics": {metric("count: 1"), ""},
		"TwoValues": {"{args: [{name: x, value: some, valueFrom: {secretKeyRef: {name: s, key: k}}}], templates: [{templateName: b}]}",
			"spec.args[0].value: conflicts with valueFrom"},
		"Secret":       {"{args: [{name: x, valueFrom: {secretKeyRef: {name: s, key: k}}}], templates: [{templateName: b}]}", ""},
		"UnknownField": {"{metrics: [{name: m, " + simple + ", cont: 3}]}", "spec.metrics[0].cont: is not a known field"},
		"Unreadable":   {"{metrics: 3}", "spec.metrics: "},
		"Names": {"{metrics: [{name: m, " + simple + "}, {name: m, " + simple + "}]}",
			`spec.metrics[1].name: "m" is the name of two metrics`},
		"NameOfTheOther": {"{metrics: [{name: b, " + simple + "}], templates: [{templateName: b}]}",
			`spec.metrics[0].name: "b" is the name of two metrics`},
		"Providers":     {"{metrics: [{name: m, provider: {web: {url: u}, job: {}}}]}", "spec.metrics[0].provider: names job and web"},
		"NoMapping":     {"{metrics: [{name: m, provider: {web: 3}}]}", "spec.metrics[0].provider.web: is not a mapping"},
		"EmptyProvider": {"{metrics: [{name: m, provider: {web: ~}}]}", "spec.metrics[0].provider[web]: is missing"},
		"Loop":          {"{templates: [{templateName: c}]}", "spec.templates: names itself: a -> c -> a"},
		"ClusterLoop": {"{templates: [{templateName: cluster-d, clusterScope: true}]}",
			"spec.templates: names itself: a -> cluster/cluster-d -> a"},
		"ItselfAlone": {"{templates: [{templateName: a}]}", "spec.templates: names itself: a -> a"},
		"NotInTheCluster": {"{templates: [{templateName: b, clusterScope: true}]}",
			"spec.templates: ClusterAnalysisTemplate b is not in this app"},
		"NotInTheApp": {"{templates: [{templateName: e}]}", "spec.templates: AnalysisTemplate e is not in this app"},
		"NoRule":      {"{templates: [{templateName: b}], dryRun: [{metricName: x}]}", `spec.dryRun[0].metricName: "x" matches no metric`},
		"NoRegexp": {"{templates: [{templateName: b}], measurementRetention: [{metricName: (, limit: 3}]}",
			`spec.measurementRetention[0].metricName: "(" is not a regular expression`},
		"Rule": {"{templates: [{templateName: b}], dryRun: [{metricName: b}]}", ""},
		"OtherDefault": {"{args: [{name: x, value: \"1\"}], templates: [{templateName: f}]}",
			`spec.args[0].value: the default "2" of x conflicts with the default "1" in another template`},
		"SameDefault":   {"{args: [{name: x, value: \"2\"}], templates: [{templateName: f}]}", ""},
		"NoDefault":     {"{args: [{name: x}], templates: [{templateName: f}]}", ""},
		"NoValue":       {"{args: [{name: none}], templates: [{templateName: b}]}", "args: the argument none has no value"},
		"Interval":      {metric("count: 2"), "spec.metrics[0].interval: is missing, but count is 2"},
		"OneNeedsNone":  {metric("count: 1"), ""},
		"NotWhole":      {metric("count: 1.5"), "spec.metrics[0].count: 1.5 is not a whole number"},
		"NegativeCount": {metric("count: -1"), "spec.metrics[0].count: -1 is negative"},
		"NoSamples":     {metric("minSamples: -1"), "spec.metrics[0].minSamples: -1 is negative"},
		"FailureLimit":  {metric("failureLimit: -2"), "spec.metrics[0].failureLimit: "},
		"Undecided":     {metric("interval: 1m, failureLimit: -1"), "spec.metrics[0].failureLimit: is -1, which needs a consecutiveSuccessLimit"},
		"Decided":       {metric("interval: 1m, failureLimit: -1, consecutiveSuccessLimit: 1"), ""},
		"Never": {metric("interval: 1m, count: 3, failureLimit: 2, consecutiveSuccessLimit: 2"),
			"spec.metrics[0].count: 3 is less than failureLimit and consecutiveSuccessLimit together"},
		"Just":         {metric("interval: 1m, count: 4, failureLimit: 2, consecutiveSuccessLimit: 2"), ""},
		"Successes":    {metric("interval: 1m, count: 2, failureLimit: -1, consecutiveSuccessLimit: 2"), ""},
		"Endless":      {metric("interval: 1m, failureLimit: 2, inconclusiveLimit: 3"), ""},
		"ManyDoubts":   {metric("interval: 1m, count: 2, inconclusiveLimit: 3"), "spec.metrics[0].count: 2 is less than inconclusiveLimit 3"},
		"AsManyDoubts": {metric("interval: 1m, count: 3, inconclusiveLimit: 3"), ""},
		"Increase":     {metric("compare: {to: stable, maxIncrease: 1}"), "spec.metrics[0].compare.maxIncrease: 1 is not within 0..1"},
		"Decrease":     {metric("compare: {to: stable, maxIncrease: -0.1}"), "spec.metrics[0].compare.maxIncrease: -0.1 is not within 0..1"},
		"NoIncrease":   {versions("compare: {to: stable, maxIncrease: 0}"), ""},
		"Sure":         {metric("compare: {to: stable, confidence: 1}"), "spec.metrics[0].compare.confidence: 1 is not within 0.5..1"},
		"Unsure":       {metric("compare: {to: stable, confidence: 0.4}"), "spec.metrics[0].compare.confidence: 0.4 is not within 0.5..1"},
		"Half":         {versions("compare: {to: stable, confidence: 0.5}"), ""},
		"Both":         {metric("compare: {to: stable}, successCondition: result > 1"), "spec.metrics[0].compare: conflicts with a condition"},
		"BothFail":     {metric("compare: {to: stable}, failureCondition: result > 1"), "spec.metrics[0].compare: conflicts with a condition"},
		"ByLabel":      {metric("compare: {to: stable, by: user}"), "spec.metrics[0].compare.by: conflicts with the provider web"},
		"ByWithHistogram": {"{metrics: [{name: m, compare: {to: stable, by: user, histogram: true}, provider: {prometheus: {query: q}}}]}",
			"spec.metrics[0].compare.by: conflicts with histogram"},
		"By": {"{metrics: [{name: m, compare: {to: stable, by: user}, provider: {prometheus: {query: '{{args.hash}}'}}}], " +
			"args: [{name: hash}]}", ""},
		"Range": {"{metrics: [{name: m, compare: {to: stable}, provider: {prometheus: {query: '{{args.hash}}', rangeQuery: {}}}}], " +
			"args: [{name: hash}]}", "spec.metrics[0].provider.prometheus.rangeQuery: conflicts with compare"},
		"Once": {strings.ReplaceAll(versions("compare: {to: stable}, interval: 1m, count: 1"), "u/", "{{release.elapsed}}/"),
			"spec.metrics[0].count: is 1, but with {{release.elapsed}} the first measurement is only the baseline"},
		"OnceByDefault": {strings.ReplaceAll(versions("compare: {to: stable}"), "u/", "{{release.elapsed}}/"), "spec.metrics[0].count: is 1"},
		"Twice":         {strings.ReplaceAll(versions("compare: {to: stable}, interval: 1m, count: 2"), "u/", "{{release.elapsed}}/"), ""},
		"Start":         {versions("compare: {to: stable}, startWhen: result > 0"), "spec.metrics[0].compare: conflicts with a condition"},
		"Job":           {pairs("job"), "spec.metrics[0].compare: needs [bad, all], and the provider job returns no such list"},
		"Kayenta":       {pairs("kayenta"), "spec.metrics[0].compare: needs [bad, all], and the provider kayenta"},
		"Webhook":       {pairs("webhook"), "spec.metrics[0].compare: needs [bad, all], and the provider webhook"},
		"Graphite":      {pairs("graphite"), "spec.metrics[0].compare: needs [bad, all], and the provider graphite"},
		"NewRelic":      {pairs("newRelic"), "spec.metrics[0].compare: needs [bad, all], and the provider newRelic"},
		"SkyWalking":    {pairs("skywalking"), "spec.metrics[0].compare: needs [bad, all], and the provider skywalking"},
		"Wavefront":     {pairs("wavefront"), ""},
		"Itself":        {metric("compare: {to: stable}"), web + sameVersion},
		"ItsRegion":     {strings.ReplaceAll(versions("compare: {to: stable}"), "hash", "region"), web + sameVersion},
		"StableItself":  {strings.ReplaceAll(versions("compare: {to: stable}"), "hash", "stable"), web + sameVersion},
		"ItselfBefore":  {"{metrics: [{name: m, compare: {to: before}, provider: {prometheus: {query: q}}}]}", ""},
		"DatadogItself": {datadog("compare: {to: stable}", "queries: {bad: a, of: b}"), "spec.metrics[0].provider.datadog: " + sameVersion},
		"DatadogPair":   {datadog("compare: {to: stable}", "queries: {bad: a, of: '{{args.hash}}'}"), ""},
		"DatadogNoPair": {datadog("compare: {to: stable}", "queries: {bad: a, all: b}"), "spec.metrics[0].provider.datadog.queries: " + noPair},
		"DatadogThree": {datadog("compare: {to: stable}", "queries: {bad: a, of: b, c: d}"),
			"spec.metrics[0].provider.datadog.queries: " + noPair},
		"DatadogQuery": {datadog("compare: {to: stable}", "query: a"), "spec.metrics[0].provider.datadog.queries: " + noPair},
		"DatadogFormula": {datadog("compare: {to: stable}", "formula: bad / of, queries: {bad: a, of: b}"),
			"spec.metrics[0].provider.datadog.formula: conflicts with compare"},
		"DatadogAlone": {datadog("count: 1", "queries: {bad: a, of: b}"),
			"spec.metrics[0].provider.datadog.formula: is missing, but there are 2 queries"},
		"DatadogBlank": {datadog("count: 1", "formula: '', queries: {bad: a, of: b}"),
			"spec.metrics[0].provider.datadog.formula: is missing, but there are 2 queries"},
		"DatadogRatio": {datadog("count: 1", "formula: bad / of, queries: {bad: a, of: b}"), ""},
		"CloudWatchPair": {cloudWatch("compare: {to: stable}", "{id: bad}, {id: of, returnData: true}, "+
			"{id: c, returnData: false, label: '{{args.hash}}'}"), ""},
		"CloudWatchNoPair":  {cloudWatch("compare: {to: stable}", "{id: bad}, {id: all}"), cloudWatchField + noPair},
		"CloudWatchHidden":  {cloudWatch("compare: {to: stable}", "{id: bad}, {id: of, returnData: false}"), cloudWatchField + noPair},
		"CloudWatchNothing": {cloudWatch("compare: {to: stable}", "1"), cloudWatchField + noPair},
		"CloudWatchAlone":   {cloudWatch("count: 1", "{id: bad}, {id: of}"), ""},
		"NoCondition":       {metric("successCondition: result >"), `spec.metrics[0].successCondition: "result >" `},
		"Elapsed": {metric("successCondition: 'result > {{elapsed}}'"),
			`spec.metrics[0].successCondition: "result > {{elapsed}}" must not use {{elapsed}}: only fields of a provider may use it`},
		"NoStart": {metric("startWhen: result >"), `spec.metrics[0].startWhen: "result >" `},
	} {
		t.Run(name, func(t *testing.T) {
			specs := map[string]string{
				"b": "{metrics: [{name: b, " + simple + "}]}", "c": "{templates: [{templateName: a}]}",
				"cluster-d": "{templates: [{templateName: a}]}",
				"f":         "{args: [{name: x, value: \"2\"}], metrics: [{name: f, provider: {web: {url: \"{{args.x}}\"}}}]}",
			}
			find := templates(t, specs)
			var spec any
			if err := yaml.Unmarshal([]byte(c.a), &spec); err != nil {
				t.Fatal(err)
			}
			a, err := analysis.ParseTemplate(rollout.Ref{Kind: "AnalysisTemplate", Name: "a"}, spec)
			if err == nil {
				_, err = analysis.Instantiate(func(ref analysis.TemplateRef) *analysis.Template {
					if ref == (analysis.TemplateRef{TemplateName: "a"}) {
						return a
					}
					return find(ref)
				}, []analysis.TemplateRef{{"a", false}}, analysis.Values{
					Plain: map[string]string{"region": "eu"}, Pods: map[string]string{"hash": "Latest", "stable": "Stable"}}, nil)
			}
			got := fmt.Sprint("no InvalidError: ", err)
			var invalid *rollout.InvalidError
			if errors.As(err, &invalid) {
				got = invalid.Field + ": " + invalid.Msg
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %q", got, c.want)
			}
		})
	}
	if _, err := analysis.Instantiate(templates(t, nil), nil, analysis.Values{}, nil); err == nil ||
		!strings.Contains(err.Error(), "the templates have no metric") {
		t.Errorf("of no template: %v", err)
	}
	values, err := analysis.Arguments([]*analysis.Template{{Spec: analysis.TemplateSpec{Args: []analysis.Arg{{Name: "s"}}}}},
		analysis.Values{Secrets: map[string]analysis.SecretRef{"s": {Name: "n", Key: "k"}}})
	if err != nil || values.Secrets["s"] != (analysis.SecretRef{Name: "n", Key: "k"}) || len(values.Plain) > 0 {
		t.Errorf("a Secret that is given: %+v, %v", values, err)
	}
}
