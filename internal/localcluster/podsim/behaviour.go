// Package podsim computes the state of a simulated pod: the behaviour that its first container
// requests, and the resulting pod status at a given time.
//
// The package has no side effects. The node agent writes the results to the API server.
//
// By default a pod is ready immediately and stays ready. Its behaviour is set by words in the image tag, each after a
// dash, or by environment variables, which take precedence. A word alone, as in shop:v2-slow, has the value in
// parentheses:
//
//	shop:v2-slow5s          LOCALCLUSTER_READY_AFTER=5s     ready after 5s (3s)
//	shop:v2-neverready      LOCALCLUSTER_READY=never        runs, never becomes ready
//	shop:v2-unready30s      LOCALCLUSTER_UNREADY_AFTER=30s  ready, then unready after 30s (5s)
//	shop:v2-crash           LOCALCLUSTER_CRASH_AFTER=0s     crash loop, each run takes 0s (0s)
//	shop:v2-badimage        LOCALCLUSTER_IMAGE=missing      the image cannot be pulled
//	shop:v2-fail0.05        LOCALCLUSTER_FAIL_RATE=0.05     5 % of the requests get a 500 (1)
//	shop:v2-latency200ms    LOCALCLUSTER_LATENCY=200ms      every answer takes 200ms (200ms)
//	shop:v2-stop2s          LOCALCLUSTER_STOP_AFTER=2s      takes 2s to stop (5s), by default 200ms
//	job:v1-run1s            LOCALCLUSTER_RUN_FOR=1s         a pod that may finish runs 1s (5s), by default 200ms
//
// LOCALCLUSTER_CRASH=1 is short for an immediate crash. READY=always, IMAGE=present and CRASH=0 override the tag.
// VERSION is the version that the pod reports, by default the image tag.
//
// Other parts of the tag are ignored (nginx:1.27-alpine). After an invalid value, the container waits with
// CreateContainerConfigError and the reason.
package podsim

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Behaviour is a pod's behaviour from its start to its end.
type Behaviour struct {
	Version      string
	ReadyAfter   time.Duration
	NeverReady   bool
	UnreadyAfter time.Duration // 0: stays ready
	Crashes      bool
	CrashAfter   time.Duration // length of each run
	BadImage     bool
	FailRate     float64 // share of requests, 0 to 1
	Latency      time.Duration
	StopAfter    time.Duration
	RunFor       time.Duration // for pods that may finish
}

const (
	defaultStopAfter = 200 * time.Millisecond
	defaultRunFor    = 200 * time.Millisecond
)

// wish is a word of the image tag, the equivalent variable, and their effect on the behaviour. The field "alone" has
// the word's default value.
type wish struct {
	word, variable, alone string
	grant                 func(b *Behaviour, value string) error
}

// wishes are in the order of evaluation. LOCALCLUSTER_CRASH is last, because its value 0 overrides
// LOCALCLUSTER_CRASH_AFTER.
var wishes = []wish{
	{"slow", "LOCALCLUSTER_READY_AFTER", "3s", duration(func(b *Behaviour) *time.Duration { return &b.ReadyAfter })},
	{"neverready", "LOCALCLUSTER_READY", "never", choice("never", "always", func(b *Behaviour) *bool { return &b.NeverReady })},
	{"unready", "LOCALCLUSTER_UNREADY_AFTER", "5s", duration(func(b *Behaviour) *time.Duration { return &b.UnreadyAfter })},
	{"badimage", "LOCALCLUSTER_IMAGE", "missing", choice("missing", "present", func(b *Behaviour) *bool { return &b.BadImage })},
	{"fail", "LOCALCLUSTER_FAIL_RATE", "1", failRate},
	{"latency", "LOCALCLUSTER_LATENCY", "200ms", duration(func(b *Behaviour) *time.Duration { return &b.Latency })},
	{"stop", "LOCALCLUSTER_STOP_AFTER", "5s", duration(func(b *Behaviour) *time.Duration { return &b.StopAfter })},
	{"run", "LOCALCLUSTER_RUN_FOR", "5s", duration(func(b *Behaviour) *time.Duration { return &b.RunFor })},
	{"crash", "LOCALCLUSTER_CRASH_AFTER", "0s", crashAfter},
	{"", "LOCALCLUSTER_CRASH", "", choice("1", "0", func(b *Behaviour) *bool { return &b.Crashes })},
}

// Of parses the behaviour that the pod's first container requests. With an error, it also returns the settings parsed so far.
func Of(pod *corev1.Pod) (Behaviour, error) {
	b := Behaviour{StopAfter: defaultStopAfter, RunFor: defaultRunFor}
	if len(pod.Spec.Containers) == 0 {
		return b, nil
	}
	container := pod.Spec.Containers[0]
	environment := make(map[string]string, len(container.Env))
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
	}
	_, tag := splitImage(container.Image)
	b.Version = cmp.Or(environment["VERSION"], tag)
	if probe := container.ReadinessProbe; probe != nil {
		b.ReadyAfter = time.Duration(probe.InitialDelaySeconds) * time.Second
	}
	if err := b.grantTag(tag); err != nil {
		return b, fmt.Errorf("image %s: %w", container.Image, err)
	}
	for _, wish := range wishes {
		value, set := environment[wish.variable]
		if !set || value == "" {
			continue
		}
		if err := wish.grant(&b, value); err != nil {
			return b, fmt.Errorf("variable %s=%q: %w", wish.variable, value, err)
		}
	}
	return b, nil
}

// tagWord splits a part of a tag, such as slow5s, into a word and its value.
var tagWord = regexp.MustCompile(`^([a-z]+)([0-9][0-9a-z.]*)?$`)

func (b *Behaviour) grantTag(tag string) error {
	for _, part := range strings.Split(tag, "-")[1:] {
		match := tagWord.FindStringSubmatch(part)
		if match == nil {
			continue
		}
		for _, wish := range wishes {
			if wish.word != match[1] {
				continue
			}
			if err := wish.grant(b, cmp.Or(match[2], wish.alone)); err != nil {
				return fmt.Errorf("tag word %q: %w", part, err)
			}
		}
	}
	return nil
}

// splitImage splits an image reference into its name and its tag. An image without a tag gets the start of its digest
// or, without a digest, "latest".
func splitImage(image string) (name, tag string) {
	name, digest, pinned := strings.Cut(image, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		return name[:colon], name[colon+1:]
	}
	if pinned {
		_, hash, _ := strings.Cut(digest, ":")
		return name, hash[:min(len(hash), 12)]
	}
	return name, "latest"
}

func duration(field func(*Behaviour) *time.Duration) func(*Behaviour, string) error {
	return func(b *Behaviour, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil {
			return err
		}
		if d < 0 {
			return fmt.Errorf("duration %s is negative", value)
		}
		*field(b) = d
		return nil
	}
}

func choice(yes, no string, field func(*Behaviour) *bool) func(*Behaviour, string) error {
	return func(b *Behaviour, value string) error {
		if value != yes && value != no {
			return fmt.Errorf("want %s or %s", yes, no)
		}
		*field(b) = value == yes
		return nil
	}
}

func failRate(b *Behaviour, value string) error {
	rate, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return err
	}
	if rate < 0 || rate > 1 {
		return fmt.Errorf("share %s is not between 0 and 1", value)
	}
	b.FailRate = rate
	return nil
}

func crashAfter(b *Behaviour, value string) error {
	b.Crashes = true
	return duration(func(b *Behaviour) *time.Duration { return &b.CrashAfter })(b, value)
}
