package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/reconciler/measure"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func newAnalysis(s streams) *cobra.Command {
	return parent(&cobra.Command{Use: "analysis", Short: "Try an analysis outside a release"},
		newAnalysisRun(s), newBacktest(s), newPower(s))
}

type templateOptions struct {
	file, namespace, address string
	args                     []string
}

func (o *templateOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", ".", "`file` or folder that has the template, or - for the standard input")
	flags.StringArrayVar(&o.args, "arg", nil,
		"`NAME=VALUE` of an argument; the values Latest and Stable mean the hashes of the versions' pods")
	flags.StringVarP(&o.namespace, "namespace", "n", "",
		"namespace of the Secrets that the template names (default: the namespace of the kubeconfig's context)")
	flags.StringVar(&o.address, "address", "", "ask Prometheus at this `URL` instead of the template's address")
}

type writtenTemplate struct {
	*analysis.Template
	file string
	ref  rollout.Ref
	err  error
}

func (o *templateOptions) read(s streams) (all []writtenTemplate, err error) {
	if o.file == "-" {
		data, err := io.ReadAll(s.in)
		all, invalid := templatesIn("the standard input", data)
		return all, cmp.Or(err, invalid)
	}
	err = filepath.WalkDir(o.file, func(path string, d fs.DirEntry, err error) error {
		isNamed := path == o.file
		if err != nil {
			return usagef("%v", err)
		}
		if d.IsDir() || !isNamed && !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return nil
		}
		data, err := os.ReadFile(path)
		found, invalid := templatesIn(path, data)
		if all = append(all, found...); isNamed {
			err = cmp.Or(err, invalid)
		}
		return err
	})
	return all, err
}

func templatesIn(file string, data []byte) (all []writtenTemplate, err error) {
	if !bytes.Contains(data, []byte("AnalysisTemplate")) {
		return nil, nil
	}
	for _, text := range strings.Split("\n"+string(data), "\n---") {
		var object rollout.Object
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			return nil, rollout.Invalidf(file, "", "is not valid YAML: %s", rollout.YAMLText(err.Error()))
		}
		if kind := object.Kind(); kind == "AnalysisTemplate" || kind == "ClusterAnalysisTemplate" {
			t, err := analysis.ParseTemplate(object.Ref(), object["spec"])
			all = append(all, writtenTemplate{t, file, object.Ref(), err})
		}
	}
	return all, nil
}

func (o *templateOptions) metrics(s streams, name string) ([]rollout.Metric, error) {
	values := analysis.Values{Plain: map[string]string{}, Pods: map[string]string{},
		Field: func(string) (string, bool) { return "", false }}
	for _, arg := range o.args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usagef("--arg %s must be NAME=VALUE", arg)
		}
		into := values.Plain
		if value == "Latest" || value == "Stable" {
			into = values.Pods
		}
		into[key] = value
	}
	metrics, declared, err := o.instantiate(s, name, values)
	if err != nil {
		return nil, err
	}
	for _, arg := range o.args {
		if key, _, _ := strings.Cut(arg, "="); !slices.Contains(declared, key) {
			return nil, usagef("--arg %s: the template has no argument %s; %s", arg, key, rollout.DidYouMean(key, declared))
		}
	}
	for i, m := range metrics {
		if metrics[i].Retention = math.MaxInt; m.Provider == "job" {
			return nil, usagef("metric %s needs Jobs, which only a release creates", m.Name)
		}
	}
	return metrics, nil
}

func (o *templateOptions) instantiate(
	s streams, name string, values analysis.Values,
) (metrics []rollout.Metric, declared []string, err error) {
	all, failed := o.read(s)
	find := func(ref analysis.TemplateRef) (found *analysis.Template) {
		kind, file := map[bool]string{true: "ClusterAnalysisTemplate", false: "AnalysisTemplate"}[ref.ClusterScope], ""
		for _, t := range all {
			switch {
			case t.ref.Kind != kind || t.ref.Name != ref.TemplateName:
				continue
			case file != "":
				failed = cmp.Or(failed, usagef("%s %s is in %s and in %s; choose one file by -f", kind, t.ref.Name, file, t.file))
			}
			if failed, file, found = cmp.Or(failed, t.err), t.file, t.Template; t.err == nil {
				declared = append(declared, rollout.Mapped(t.Spec.Args, func(a analysis.Arg) string { return a.Name })...)
			}
		}
		return found
	}
	ref := analysis.TemplateRef{TemplateName: name}
	ref.ClusterScope = find(ref) == nil
	if find(ref) == nil && failed == nil {
		names := rollout.Mapped(all, func(t writtenTemplate) string { return t.ref.Name })
		return nil, nil, usagef("%s has no AnalysisTemplate %s; %s", o.file, name,
			cmp.Or(rollout.DidYouMean(name, names), "give its file by -f"))
	}
	check := func(kind string, config map[string]any) error {
		if kind == "prometheus" && o.address != "" {
			config["address"] = o.address
		}
		return provider.Check(kind, config)
	}
	metrics, err = analysis.Instantiate(find, []analysis.TemplateRef{ref}, values, check)
	err = cmp.Or(failed, err)
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) && invalid.Field == "args" {
		invalid.Fix = "give it by --arg NAME=VALUE; for a pod template hash, write --arg NAME=Latest"
	}
	return metrics, slices.Compact(slices.Sorted(slices.Values(declared))), err
}

// newWorker returns a Worker with the given clock. The Worker connects to the cluster only for Secrets.
func newWorker(ctx context.Context, s streams, clock func() time.Time, past bool) *measure.Worker {
	secret := func(ctx context.Context, namespace, name string) (map[string]string, error) {
		config, err := s.target.config()
		if err != nil {
			return nil, err
		}
		client, err := cluster.New(config, cluster.Options{})
		if err != nil {
			return nil, err
		}
		return ownSecrets(client, rollout.LabelAnalysis)(ctx, namespace, name)
	}
	return measure.New(ctx, measure.Options{
		Deps: provider.Deps{
			Client: call.Clients(), Agent: call.Clients(), Secret: secret, Now: clock, Getenv: os.Getenv,
			ReadFile: os.ReadFile,
		},
		Past:    past,
		As:      func(ctx context.Context, _ rollout.App) context.Context { return ctx },
		Trouble: func(_, metric string, err error) { _, _ = fmt.Fprintf(s.err, "metric %s: %v\n", metric, err) }})
}

func (o *templateOptions) secretsIn(target clusterOptions) string {
	own, _, _ := target.kubectl().Namespace() // without a kubeconfig, reading Secrets fails later
	return cmp.Or(o.namespace, own)
}

type analysisRun struct {
	streams
	templateOptions
	output         outputOption
	duration       time.Duration
	latest, stable string
}

func newAnalysisRun(s streams) *cobra.Command {
	c := &analysisRun{streams: s}
	cmd := &cobra.Command{
		Use:   "run TEMPLATE",
		Short: "Run an analysis now, outside a release",
		Long: `Measure the metrics of an AnalysisTemplate or ClusterAnalysisTemplate now, and
judge the measurements as a release would. It needs no release, no repository and,
unless the template names Secrets, no cluster.

TEMPLATE is the name of a template in the folder or file -f, as the file has it:
kustomize does not run, but "kustomize build . | gitrollout analysis run -f -"
works. Each argument without a default needs --arg. If the template asks for the
hash of the pods (podTemplateHashValue), give --arg NAME=Latest and the hashes:
--latest and, for metrics that compare, --stable. {{elapsed}} and
{{release.elapsed}} count from the start of the command.

It prints each measurement, and at the end the verdict of each metric. -o prints
the record of the run instead, and the measurements on standard error. The exit
code is 0 for Successful, or if nothing failed within --duration, 1 for Failed and
Error, 7 if a metric has no verdict after --duration, and 8 for Inconclusive.`,
		Example: `  gitrollout analysis run errors --arg hash=Latest --latest 5d8f7c9b4
  gitrollout analysis run errors -f analysis.yaml --duration 10m --address http://localhost:9090
  gitrollout analysis run errors-against-stable --arg hash=Latest --latest 5d8f7c9b4 --stable 7c6b5d4f8 -o json`,
		Args: exactlyOne("template"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	register(cmd, &c.templateOptions)
	c.output.register(cmd, "json", "yaml")
	flags := cmd.Flags()
	flags.DurationVar(&c.duration, "duration", 0, "measure for this time at most (default: until the verdict)")
	flags.StringVar(&c.latest, "latest", "", "pod-template-`hash` of the new version")
	flags.StringVar(&c.stable, "stable", "", "pod-template-`hash` of the stable version")
	return cmd
}

func (c *analysisRun) run(ctx context.Context, name string) error {
	metrics, err := c.metrics(c.streams, name)
	if err != nil {
		return err
	}
	for _, m := range metrics {
		if isEndless(m) && c.duration <= 0 {
			return usagef("metric %s is measured without end: add --duration", m.Name)
		}
	}
	began := time.Now()
	t := strategies.NewTrial(name, metrics, strategies.Measure{
		Workload: rollout.Workload{Namespace: c.secretsIn(c.target)}, Latest: c.latest, Stable: c.stable,
		Since: began, ReleaseSince: began, IsSteady: true}, began)
	if t.LacksPods() {
		return usagef("the metrics need hashes of pods: add --latest and, for metrics that compare, --stable")
	}
	measuring, cancel := context.WithDeadline(ctx, began.Add(cmp.Or(c.duration, math.MaxInt64)))
	defer cancel()
	if err := cmp.Or(c.measure(measuring, t), ctx.Err()); err != nil {
		return err
	}
	t.Stop()
	err = c.output.show(c.streams, t.Run, func() string {
		return strings.Join(append(rollout.Evidence([]rollout.AnalysisRun{t.Run}), strings.TrimSuffix(
			fmt.Sprintf("%s: %s, %s", name, t.Run.Phase, t.Run.Message), ", ")), "\n") + "\n"
	})
	code := verdictCode(t)
	return cmp.Or(err, silentIf(code != exitOK, code))
}

func isEndless(m rollout.Metric) bool { return m.Count == 0 && m.ConsecutiveSuccessLimit == 0 }

func (c *analysisRun) measure(ctx context.Context, t *strategies.Trial) error {
	worker, lines := newWorker(ctx, c.streams, time.Now, false), c.out
	if c.output.format != "" {
		lines = c.err
	}
	for !t.Run.Phase.Done() {
		due, next := t.Due(time.Now())
		if len(due) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Until(next)):
			}
			continue
		}
		for _, m := range due {
			got := worker.Take(ctx, rollout.App{}, m)
			if ctx.Err() != nil {
				return nil // an interrupted measurement does not count
			}
			t.Take(got)
			text := strings.TrimSpace(got.Value + "  " + got.Message)
			_, err := fmt.Fprintf(lines, "%s  %-20s  %-12s  %s\n", got.At.Format(time.TimeOnly), got.Metric, got.Phase, text)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// verdictCode returns the exit code of an analysis. In a stopped run, one successful measurement makes an endless
// metric successful.
func verdictCode(t *strategies.Trial) exitCode {
	switch t.Run.Phase {
	case analysis.Failed, analysis.Errored:
		return exitFailed
	case analysis.Inconclusive:
		return exitHeld
	case analysis.Stopped:
		for i, p := range t.Run.Metrics {
			isGood := p.Phase == analysis.Successful || isEndless(t.Metrics[i]) && p.Successful > 0
			if !p.DryRun && !isGood {
				return exitNotYet
			}
		}
	}
	return exitOK
}
