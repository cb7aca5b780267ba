package rollout

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// Config is the file .gitrollout/<cluster>/config.yaml on the users' branch:
// which apps a cluster has, and where their state is kept.
type Config struct {
	File     string        // the path it was read from, for messages
	Interval time.Duration // between polls; default 30s, at least 1s
	// PushInterval is the least time between two pushes to the state branch that are in no hurry; default 1s. A retreat
	// does not wait for it.
	PushInterval time.Duration
	StateBranch  string        // default gitrollout/state/<cluster>; always below gitrollout/
	Apps         []AppGlob     // at least one
	Forge        *Forge        // nil: no pull requests are opened
	Windows      []Window      // when releases may advance
	AutoRevert   AutoRevert    // what becomes of a rejected release in Git; default AutoRevertPropose
	Receivers    []Receiver    // who is told of what
	Limits       Limits        // of rendering an app
	Workloads    []Partitioned // kinds that can be moved in stages besides those that are built in
}

// AutoRevert is what gitrollout does in Git about a release that was rejected.
type AutoRevert string

// The ways to make Git agree with a cluster that went back.
const (
	AutoRevertPropose AutoRevert = "propose" // a branch to merge, and its pull request
	AutoRevertPush    AutoRevert = "push"    // a commit on the users' branch, where that concerns one app alone
	AutoRevertOff     AutoRevert = "off"     // nothing
)

// ReadValue reads a text, or false, which is what YAML makes of off.
func (a *AutoRevert) ReadValue(raw any) error {
	switch raw {
	case false:
		*a = AutoRevertOff
	case string(AutoRevertPropose), string(AutoRevertPush), string(AutoRevertOff):
		*a = AutoRevert(raw.(string))
	default:
		return Invalidf("", "", "%v is not one of propose, push, off", raw).WithFix("write propose, which is the default")
	}
	return nil
}

// Shape is the JSON Schema of one.
func (AutoRevert) Shape() map[string]any {
	return map[string]any{"enum": []any{AutoRevertPropose, AutoRevertPush, AutoRevertOff, false}}
}

// The defaults of a configuration.
const (
	defaultInterval = 30 * time.Second
	minInterval     = time.Second

	defaultPushInterval = time.Second

	// DefaultKubernetes is the version of Kubernetes that charts are told where the configuration does not say. It stays
	// as it is when libraries are newer: what charts render to depends on it.
	DefaultKubernetes = "1.36.0"
)

// ConfigPath returns where a cluster's configuration is on the users' branch.
func ConfigPath(cluster string) string { return ".gitrollout/" + cluster + "/config.yaml" }

// configFile is the file's form.
type configFile struct {
	APIVersion    string            `json:"apiVersion"`
	Kind          string            `json:"kind"` // Config
	Interval      string            `json:"interval" like:"span" fix:"write 30s, 1m or the like"`
	PushInterval  string            `json:"pushInterval" like:"span" fix:"write 1s, 5s or the like"`
	StateBranch   *string           `json:"stateBranch" like:"branch"`
	Apps          []appGlobFile     `json:"apps" needs:"name the folders of your kustomizations: - path: apps/*/overlays/prod"`
	Forge         *Forge            `json:"forge"`
	Windows       []windowFile      `json:"windows" max:"100" fix:"leave some out"`
	AutoRevert    AutoRevert        `json:"autoRevert" default:"propose"`
	Notifications []receiverFile    `json:"notifications" max:"50" fix:"name several apps in one entry"`
	Limits        Limits            `json:"limits" default:"{}"`
	Kubernetes    kubernetesFile    `json:"kubernetes"`
	Workloads     []partitionedFile `json:"workloads" max:"50" fix:"leave some out"`
	_             any               `field:"signing" notYet:"leave it out"`
}

// kubernetesFile is what charts are told of the cluster.
type kubernetesFile struct {
	Version     string   `json:"version" is:"kubernetes"`
	APIVersions []string `json:"apiVersions" max:"500" is:"apiVersion"`
}

// ParseConfig reads a configuration strictly and fills in the defaults. The cluster's name, which the default state
// branch needs, is that of the file's folder. Errors are InvalidErrors that name file, field and fix.
func ParseConfig(file string, data []byte) (*Config, error) {
	raw, err := decode[configFile](file, "Config", data)
	if err != nil {
		return nil, err
	}
	c := &Config{
		File: file, StateBranch: StateBranch(path.Base(path.Dir(file))),
		Forge: raw.Forge, AutoRevert: raw.AutoRevert, Limits: raw.Limits,
	}
	if c.Interval, err = parseInterval(file, "interval", raw.Interval, defaultInterval); err != nil {
		return nil, err
	}
	if c.PushInterval, err = parseInterval(file, "pushInterval", raw.PushInterval, defaultPushInterval); err != nil {
		return nil, err
	}
	if raw.StateBranch != nil {
		c.StateBranch = *raw.StateBranch
	}
	if why := checkBranch(c.StateBranch); why != "" {
		return nil, Invalidf(file, "stateBranch", "%q %s", c.StateBranch, why).WithFix("use gitrollout/state/<cluster>")
	}
	if err := c.Forge.check(file); err != nil {
		return nil, err
	}
	if c.Windows, err = parseWindows(file, raw.Windows); err != nil {
		return nil, err
	}
	if c.Receivers, err = parseReceivers(file, raw.Notifications); err != nil {
		return nil, err
	}
	if c.Workloads, err = parsePartitioned(file, raw.Workloads); err != nil {
		return nil, err
	}
	for i, a := range raw.Apps {
		glob, err := parseGlob(file, fmt.Sprintf("apps[%d]", i), a)
		if err != nil {
			return nil, err
		}
		if c.Limits != (Limits{}).OrDefault() {
			glob.limits = c.Limits
		}
		glob.kube, glob.workloads = raw.Kubernetes, PartitionedText(c.Workloads)
		c.Apps = append(c.Apps, *glob)
	}
	return c, nil
}

func parseInterval(file, field, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, Invalidf(file, field, "%q is not a duration", text).WithFix("write 30s, 1m or the like")
	}
	if d < minInterval {
		return 0, Invalidf(file, field, "%q is less than %s", text, minInterval).WithFix("use 1s or more")
	}
	return d, nil
}

// badRef are the forms that Git refuses in a branch name (git check-ref-format).
var badRef = regexp.MustCompile(`\.\.|//|@\{|[\x00-\x20\x7f~^:?*\[\\]|/\.|\.lock(/|$)|[./]$`)

// checkBranch says what is wrong with a state branch, "" if nothing is. It is
// below gitrollout/ because that is all that the reconciler may push to.
func checkBranch(branch string) string {
	switch {
	case !strings.HasPrefix(branch, OwnBranches):
		return "is not below gitrollout/, the only branches that gitrollout pushes to"
	case badRef.MatchString(branch):
		return "is not a branch name"
	case IsProposal(branch):
		return "is where proposals are pushed to"
	case strings.HasPrefix(branch, NotifiedBranch("")):
		return "is where it is kept who was told of what"
	default:
		return ""
	}
}
