package rollout

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// Config is the file .gitrollout/<cluster>/config.yaml on the users' branch.
type Config struct {
	File       string        // for errors
	APIVersion string        // of the file, and of the records that gitrollout writes
	Interval   time.Duration // between polls of the users' branch; default 30s, at least 1s
	// PushInterval is the least time between pushes to the state branch; default 1s. It does not delay rollbacks.
	PushInterval time.Duration
	StateBranch  string     // default gitrollout/state/<cluster>; always below gitrollout/
	StateRepo    string     // the repository of the state branch, on the same server; "": the users' repository
	Apps         []AppGlob  // at least one entry
	Forge        *Forge     // nil: gitrollout opens no pull requests
	Windows      []Window   // when releases may, or may not, advance
	AutoRevert   AutoRevert // default AutoRevertPropose
	Receivers    []Receiver
	Limits       Limits
	Workloads    []Partitioned // additional kinds of workloads for staged releases
	Shared       SharedChanges
}

// AutoRevert selects the action in Git after a rejected release.
type AutoRevert string

const (
	AutoRevertPropose AutoRevert = "propose" // push a reverting branch, and open a pull request
	AutoRevertPush    AutoRevert = "push"    // push the revert, but only propose a revert that might undo other changes
	AutoRevertOff     AutoRevert = "off"
)

// ReadValue reads a text or false, because YAML reads "off" as false.
func (a *AutoRevert) ReadValue(raw any) error {
	switch raw {
	case false:
		*a = AutoRevertOff
	case string(AutoRevertPropose), string(AutoRevertPush), string(AutoRevertOff):
		*a = AutoRevert(raw.(string))
	default:
		return Invalidf("", "", "%v must be propose, push or off", raw).WithFix("write propose, which is the default")
	}
	return nil
}

// Shape returns the JSON Schema.
func (AutoRevert) Shape() map[string]any {
	return map[string]any{"enum": []any{AutoRevertPropose, AutoRevertPush, AutoRevertOff, false}}
}

// DefaultKubernetes is the Kubernetes version for charts if the configuration sets none.
const DefaultKubernetes = "1.36.0"

// ConfigPath returns the path of config.yaml.
func ConfigPath(cluster string) string { return ".gitrollout/" + cluster + "/config.yaml" }

type configFile struct {
	APIVersion    string            `json:"apiVersion"`
	Kind          string            `json:"kind"` // Config
	Interval      string            `json:"interval" like:"span" fix:"write 30s, 1m or the like"`
	PushInterval  string            `json:"pushInterval" like:"span" fix:"write 1s, 5s or the like"`
	StateBranch   *string           `json:"stateBranch" like:"branch"`
	StateRepo     string            `json:"stateRepo" is:"repository"`
	Apps          []appGlobFile     `json:"apps" needs:"name the folders of your kustomizations: - path: apps/*/overlays/prod"`
	Forge         *Forge            `json:"forge"`
	Windows       []windowFile      `json:"windows" max:"100" fix:"leave some out"`
	AutoRevert    AutoRevert        `json:"autoRevert" default:"propose"`
	Notifications []receiverFile    `json:"notifications" max:"50" fix:"name several apps in one entry"`
	Limits        Limits            `json:"limits" default:"{}"`
	Kubernetes    kubernetesFile    `json:"kubernetes"`
	Workloads     []partitionedFile `json:"workloads" max:"50" fix:"leave some out"`
	SharedChanges SharedChanges     `json:"sharedChanges" default:"{}"`
	_             any               `field:"signing" notYet:"leave it out"`
}

type kubernetesFile struct {
	Version     string   `json:"version" is:"kubernetes"`
	APIVersions []string `json:"apiVersions" max:"500" is:"apiVersion"`
}

// ParseConfig reads a configuration strictly. Errors are InvalidErrors. The file's folder names the cluster and the
// default state branch.
func ParseConfig(file string, data []byte) (*Config, error) {
	raw, err := decode[configFile](file, "Config", data)
	if err != nil {
		return nil, err
	}
	c := &Config{
		File: file, APIVersion: raw.APIVersion, StateBranch: StateBranch(path.Base(path.Dir(file))),
		StateRepo: raw.StateRepo, Forge: raw.Forge, AutoRevert: raw.AutoRevert, Limits: raw.Limits, Shared: raw.SharedChanges,
	}
	if c.Interval, err = parseInterval(file, "interval", raw.Interval, 30*time.Second); err != nil {
		return nil, err
	}
	if c.PushInterval, err = parseInterval(file, "pushInterval", raw.PushInterval, time.Second); err != nil {
		return nil, err
	}
	if raw.StateBranch != nil {
		c.StateBranch = *raw.StateBranch
	}
	if why := checkBranch(c.StateBranch); why != "" {
		return nil, Invalidf(file, "stateBranch", "%q %s", c.StateBranch, why).WithFix("use gitrollout/state/<cluster>")
	}
	if err := cmp.Or(c.Forge.check(file), c.Shared.check(file)); err != nil {
		return nil, err
	}
	for i, w := range raw.Windows {
		window, err := parseWindow(file, fmt.Sprintf("windows[%d]", i), w)
		if err != nil {
			return nil, err
		}
		c.Windows = append(c.Windows, *window)
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
	if d < time.Second {
		return 0, Invalidf(file, field, "%q is less than 1s", text).WithFix("use 1s or more")
	}
	return d, nil
}

// badRef matches names that Git refuses (git check-ref-format).
var badRef = regexp.MustCompile(`\.\.|//|@\{|[\x00-\x20\x7f~^:?*\[\\]|/\.|\.lock(/|$)|[./]$`)

func checkBranch(branch string) string {
	switch {
	case !strings.HasPrefix(branch, OwnBranches):
		return "is not below gitrollout/, the only branches that gitrollout pushes to"
	case badRef.MatchString(branch):
		return "is not a branch name"
	case IsProposal(branch):
		return "is where proposals are pushed to"
	case strings.HasPrefix(branch, NotifiedBranch("")):
		return "is the record of sent notifications"
	}
	return ""
}
